/* Every form of /proc/<pid>/cgroup and of /proc/<pid>/stat that tells which pod a process is in, and the names of pods
 * that the kubelet leaves in /var/log. */
#include "attribution/attribution_private.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

#define UID        "a1b2c3d4-0011-2233-4455-66778899aabb"
#define UNDERLINED "a1b2c3d4_0011_2233_4455_66778899aabb"
#define OTHER_UID  "ffffffff-0011-2233-4455-66778899aabb"
#define HASH       "0123456789abcdef0123456789abcdef"
#define ID         "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER_ID   "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
#define SLICE      "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UNDERLINED ".slice"

static const struct row {
    const char *what, *text, *pod_uid, *container_id;
    bool is_relative;
} rows[] = {
    {"v2, systemd, guaranteed", "0::/kubepods.slice/kubepods-pod" UNDERLINED ".slice/cri-containerd-" ID ".scope\n",
     UID, ID, false},
    {"v2, systemd, burstable", "0::/" SLICE "/cri-containerd-" ID ".scope\n", UID, ID, false},
    {"v2, systemd, best effort",
     "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UNDERLINED ".slice/cri-containerd-" ID
     ".scope\n",
     UID, ID, false},
    {"v2, cgroupfs, guaranteed", "0::/kubepods/pod" UID "/" ID "\n", UID, ID, false},
    {"v2, cgroupfs, burstable", "0::/kubepods/burstable/pod" UID "/" ID "\n", UID, ID, false},
    {"cri-o, systemd", "0::/" SLICE "/crio-" ID ".scope\n", UID, ID, false},
    {"cri-o with crun's child", "0::/" SLICE "/crio-" ID ".scope/container\n", UID, ID, false},
    {"cri-o, cgroupfs", "0::/kubepods/besteffort/pod" UID "/crio-" ID "\n", UID, ID, false},
    {"cri-o's conmon is no container", "0::/" SLICE "/crio-conmon-" ID ".scope\n", UID, "", false},
    {"docker", "0::/" SLICE "/docker-" ID ".scope\n", UID, ID, false},
    {"podman", "0::/" SLICE "/libpod-" ID ".scope\n", UID, ID, false},
    {"podman's conmon is no container", "0::/" SLICE "/libpod-conmon-" ID ".scope\n", UID, "", false},
    {"the wrong driver: colons",
     "0::/system.slice/containerd.service/kubepods-burstable-pod" UNDERLINED ".slice:cri-containerd:" ID "\n", UID, ID,
     false},
    {"kind",
     "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-"
     "pod" UNDERLINED ".slice/cri-containerd-" ID ".scope\n",
     UID, ID, false},
    {"a node in docker",
     "0::/docker/" OTHER_ID "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UNDERLINED
     ".slice/cri-containerd-" ID ".scope\n",
     UID, ID, false},
    {"a node in a pod: the inner pod",
     "0::/kubepods/pod" OTHER_UID "/" OTHER_ID "/kubelet/kubepods/burstable/pod" UID "/" ID "\n", UID, ID, false},
    {"docker in a pod: the pod's own container", "0::/kubepods/pod" UID "/" ID "/docker/" OTHER_ID "\n", UID, ID,
     false},
    {"systemd in a container", "0::/" SLICE "/cri-containerd-" ID ".scope/init.scope\n", UID, ID, false},
    {"jobs in a container", "0::/" SLICE "/cri-containerd-" ID ".scope/job_7/step_0/task_3\n", UID, ID, false},
    {"rootless", "0::/user.slice/user-1000.slice/user@1000.service/" SLICE "/cri-containerd-" ID ".scope\n", UID, ID,
     false},
    {"another root", "0::/host/kubernetes/kubepods/pod" UID "/" ID "\n", UID, ID, false},
    {"static pod, cgroupfs", "0::/kubepods/burstable/pod" HASH "/" ID "\n", HASH, ID, false},
    {"static pod, systemd",
     "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" HASH ".slice/cri-containerd-" ID ".scope\n",
     HASH, ID, false},
    {"Kata", "0::/kubepods/burstable/pod" UID "/kata_" ID "\n", UID, ID, false},
    {"Kata's overhead", "0::/kubepods/burstable/pod" UID "/kata_overhead\n", UID, "", false},
    {"a cgroup that was removed", "0::/kubepods/pod" UID "/" ID " (deleted)\n", UID, ID, false},
    {"no newline at the end", "0::/kubepods/pod" UID "/" ID, UID, ID, false},

    {"seen from another pod's cgroup namespace",
     "0::/../../kubepods-burstable-pod" UNDERLINED ".slice/cri-containerd-" ID ".scope\n", UID, ID, true},
    {"seen from the own pod", "0::/../cri-containerd-" ID ".scope\n", "", ID, true},
    {"the reader itself", "0::/\n", "", "", false},

    {"v1",
     "12:pids:/kubepods/burstable/pod" UID "/" ID "\n11:hugetlb:/kubepods/burstable/pod" UID "/" ID
     "\n4:memory:/kubepods/burstable/pod" UID "/" ID "\n1:name=systemd:/kubepods/burstable/pod" UID "/" ID "\n",
     UID, ID, false},
    {"v1: a hierarchy that the runtime leaves alone",
     "13:misc:/\n12:rdma:/\n4:memory:/kubepods/pod" UID "/" ID "\n3:cpu,cpuacct:/kubepods/pod" UID "\n", UID, ID,
     false},
    {"v1: the systemd hierarchy is the daemon's own",
     "4:memory:/kubepods/pod" UID "/" ID "\n1:name=systemd:/system.slice/containerd.service\n", UID, ID, false},
    {"v1: a node in docker whose systemd hierarchy is the outer container's",
     "4:misc:/kubepods/pod" UID "\n1:name=systemd:/docker/" ID "\n", UID, "", false},
    {"hybrid",
     "9:memory:/kubepods/pod" UID "/" ID "\n1:name=systemd:/kubepods/pod" UID "/" ID
     "\n0::/system.slice/containerd.service\n",
     UID, ID, false},

    {"a host's service", "0::/system.slice/sshd.service\n", "", "", false},
    {"a host's session", "0::/user.slice/user-0.slice/session-3.scope\n", "", "", false},
    {"a host's container", "0::/system.slice/docker-" ID ".scope\n", "", ID, false},
    {"podman on the host", "0::/machine.slice/libpod-" ID ".scope\n", "", ID, false},
    {"a pod's slice by itself", "0::/" SLICE "\n", UID, "", false},
    {"letters that look like hex after pod", "0::/system.slice/podface.service\n", "", "", false},
    {"a UID that is too long", "0::/kubepods/pod" UID "a/x\n", "", "", false},
    {"a UID that is too short", "0::/kubepods/poda1b2c3d4-0011-2233-4455-66778899aab/x\n", "", "", false},
    {"a hash that is too long", "0::/kubepods/pod" HASH "0/x\n", "", "", false},
    {"an id that is too long", "0::/kubepods/pod" UID "/" ID "0\n", UID, "", false},
    {"capitals are not what runtimes write", "0::/kubepods/podA1B2C3D4-0011-2233-4455-66778899AABB/x\n", "", "", false},
};

static void test_each_form_of_path_gives_the_pod_and_the_container(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct attribution_cgroup got;
        print_message("%s\n", rows[i].what);
        assert_true(attribution_cgroup_parse(str_of(rows[i].text), &got));
        assert_string_equal(got.pod_uid, rows[i].pod_uid);
        assert_string_equal(got.container_id, rows[i].container_id);
        assert_int_equal(got.is_pod, *rows[i].pod_uid != '\0');
        assert_int_equal(got.is_relative, rows[i].is_relative);
    }
}

static void test_what_is_no_cgroup_file_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "\n\n", "no colon", "1:one", ":"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct attribution_cgroup got = {.container_id = "as it was"};
        assert_false(attribution_cgroup_parse(str_of(bad[i]), &got));
        assert_string_equal(got.container_id, "as it was");
    }
}

/* ---- stat ---- */

static void test_a_process_started_when_field_22_says(void **state)
{
    (void)state;
#define REST " 0 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 "
    static const struct {
        const char *text;
        uint64_t want;
    } good[] = {
        {"42 (python3) S 1 42" REST "987654321 1000 200\n", 987654321},
        {"42 (a b) S 1 42" REST "7 1000\n", 7},
        {"42 (nasty) S 9) 1) R 1 42" REST "18446744073709551615 0\n", UINT64_MAX},
        {"42 (()) S 1 42" REST "0", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        uint64_t got = 1;
        assert_true(attribution_stat_parse(str_of(good[i].text), &got));
        assert_true(got == good[i].want);
    }
    static const char *const bad[] = {
        "",
        "42",
        "42 (python3)",
        "42 (python3) S 1 42",
        "42 (a) S 1 42 0 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0",
        "42 (a) S 1 42" REST "-5 0",
        "42 (a) S 1 42" REST "x",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t got = 77;
        assert_false(attribution_stat_parse(str_of(bad[i]), &got));
        assert_true(got == 77);
    }
}

/* ---- names ---- */

static void test_folders_of_logs_name_pods_by_uid(void **state)
{
    (void)state;
    struct attribution_pod_name name;
    struct str uid;
    assert_true(attribution_pod_folder_parse(str_of("ml_trainer-0_" UID), &name, &uid));
    assert_string_equal(name.ns, "ml");
    assert_string_equal(name.pod, "trainer-0");
    assert_true(str_equals(uid, UID));
    assert_true(attribution_pod_folder_parse(str_of("kube-system_proxy-node1_" HASH), &name, &uid));
    assert_true(str_equals(uid, HASH));
    static const char *const bad[] = {"",       ".",       "..",      "ml", "ml_trainer-0", "ml_trainer-0_",
                                      "__" UID, "_a_" UID, "ml__" UID};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(attribution_pod_folder_parse(str_of(bad[i]), &name, &uid));
}

static void test_links_of_logs_name_pods_by_container(void **state)
{
    (void)state;
    struct attribution_pod_name name;
    struct str id;
    assert_true(attribution_log_link_parse(str_of("trainer-0_ml_main-" ID ".log"), &name, &id));
    assert_string_equal(name.ns, "ml");
    assert_string_equal(name.pod, "trainer-0");
    assert_true(str_equals(id, ID));
    assert_true(attribution_log_link_parse(str_of("a_b_side-car-1-" ID ".log"), &name, &id));
    assert_true(str_equals(id, ID));
    static const char *const bad[] = {
        "",
        ".log",
        "a_b_c-" ID,
        "a_b_" ID ".log",
        "a_b_-" ID ".log",
        "a_c-" ID ".log",
        "a_b_c.log",
        "_b_c-" ID ".log",
        "a__c-" ID ".log",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (attribution_log_link_parse(str_of(bad[i]), &name, &id))
            fail_msg("\"%s\" is taken", bad[i]);
}

static void test_the_longest_names_are_kept_whole_and_longer_ones_refused(void **state)
{
    (void)state;
    struct attribution_pod_name name;
    struct str uid;
    char longest[1024];
    (void)snprintf(longest, sizeof(longest), "%063d_%0253d_" UID, 1, 2);
    assert_true(attribution_pod_folder_parse(str_of(longest), &name, &uid));
    assert_int_equal(strlen(name.ns), 63);
    assert_int_equal(strlen(name.pod), 253);
    (void)snprintf(longest, sizeof(longest), "ml_%0*d_" UID, ATTRIBUTION_NAME_MAX + 1, 2);
    assert_false(attribution_pod_folder_parse(str_of(longest), &name, &uid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_form_of_path_gives_the_pod_and_the_container),
        cmocka_unit_test(test_what_is_no_cgroup_file_is_refused),
        cmocka_unit_test(test_a_process_started_when_field_22_says),
        cmocka_unit_test(test_folders_of_logs_name_pods_by_uid),
        cmocka_unit_test(test_links_of_logs_name_pods_by_container),
        cmocka_unit_test(test_the_longest_names_are_kept_whole_and_longer_ones_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
