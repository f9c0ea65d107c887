/* Environments to plans, plans to devices. */
#include "cli/job.h"

#include <string.h>

#include "support.h"

/* An environment in one text: "NAME=value" words, separated by ';'. */
static const char *lookup(void *context, const char *name)
{
    static char values[8][256]; /* as many as are asked for at once */
    static size_t at;
    struct str rest = str_of(context);
    while (rest.ptr) {
        struct str value = str_cut(&rest, ';'), key = str_cut(&value, '=');
        if (!str_equals(key, name))
            continue;
        at = (at + 1) % ARRAY_LEN(values);
        (void)str_copy(values[at], sizeof(values[at]), value);
        return values[at];
    }
    return NULL;
}

static void test_the_environment_is_the_first_that_shows(void **state)
{
    (void)state;
    static const struct {
        const char *word, *environment;
        int want; /* -1 refused */
    } rows[] = {
        {"auto", "", JOB_STANDALONE},
        {"auto", "SLURM_JOB_ID=1", JOB_SLURM},
        {"auto", "SLURM_JOB_ID=;FLUX_JOB_ID=f1", JOB_FLUX},
        {"auto", "KUBERNETES_SERVICE_HOST=10.0.0.1;FLUX_JOB_ID=f1;SLURM_JOB_ID=1", JOB_SLURM},
        {"auto", "KUBERNETES_SERVICE_HOST=10.0.0.1;FLUX_JOB_ID=f1", JOB_FLUX},
        {"auto", "KUBERNETES_SERVICE_HOST=10.0.0.1", JOB_KUBERNETES},
        {"k8s", "", JOB_KUBERNETES},
        {"kubernetes", "SLURM_JOB_ID=1", JOB_KUBERNETES},
        {"standalone", "SLURM_JOB_ID=1", JOB_STANDALONE},
        {"slurm", "", JOB_SLURM},
        {"flux", "", JOB_FLUX},
        {"pbs", "", -1},
        {"", "", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum job_environment got = JOB_STANDALONE;
        int rc = job_environment_of(rows[i].word, lookup, (void *)(uintptr_t)rows[i].environment, &got);
        if (rc != (rows[i].want < 0 ? -1 : 0) || (rc == 0 && (int)got != rows[i].want))
            fail_msg("row %zu: %d, %d", i, rc, (int)got);
    }
}

static void test_environments_have_the_names_that_parsers_know(void **state)
{
    (void)state;
    assert_string_equal(job_environment_name(JOB_STANDALONE), "standalone");
    assert_string_equal(job_environment_name(JOB_KUBERNETES), "k8s");
    assert_string_equal(job_environment_name(JOB_SLURM), "slurm");
    assert_string_equal(job_environment_name(JOB_FLUX), "flux");
}

static void describe(const char *environment, enum job_environment kind, int64_t device, struct buf *out)
{
    struct job_plan plan;
    job_plan_init(&plan, kind, device, "host", lookup, (void *)(uintptr_t)environment);
    job_plan_describe(&plan, out);
    job_plan_fini(&plan);
}

static void test_the_plan_is_what_scheduler_and_cuda_say(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        enum job_environment kind;
        int64_t device;
        const char *want;
    } rows[] = {
        {"", JOB_SLURM, -1, "all GPUs"},
        {"", JOB_SLURM, 3, "3 (--device)"},
        {"SLURM_STEP_GPUS=0,2", JOB_SLURM, 1, "1 (--device)"},
        {"SLURM_STEP_GPUS=0,2;SLURM_JOB_GPUS=0-3", JOB_SLURM, -1, "0, 2 (SLURM_STEP_GPUS)"},
        {"SLURM_STEP_GPUS=;SLURM_JOB_GPUS=0-3", JOB_SLURM, -1, "0, 1, 2, 3 (SLURM_JOB_GPUS)"},
        {"SLURM_JOB_GPUS=0-1,5;CUDA_VISIBLE_DEVICES=0", JOB_SLURM, -1, "0, 1, 5 (SLURM_JOB_GPUS)"},
        {"SLURM_JOB_GPUS=1;CUDA_VISIBLE_DEVICES=", JOB_SLURM, -1, "1 (SLURM_JOB_GPUS)"},
        {"GPU_DEVICE_ORDINAL=1;CUDA_VISIBLE_DEVICES=0", JOB_SLURM, -1, "1 (GPU_DEVICE_ORDINAL)"},
        {"SLURM_STEP_GPUS=0;CUDA_VISIBLE_DEVICES=MIG-aa,MIG-bb", JOB_SLURM, -1,
         "MIG-aa, MIG-bb (CUDA_VISIBLE_DEVICES)"},
        {"SLURM_STEP_GPUS=0;CUDA_VISIBLE_DEVICES=GPU-aa", JOB_SLURM, -1, "GPU-aa (CUDA_VISIBLE_DEVICES)"},
        {"CUDA_VISIBLE_DEVICES=NoDevFiles", JOB_SLURM, -1, "none (CUDA_VISIBLE_DEVICES)"},
        {"SLURM_JOB_GPUS=0,gpu:1,3-1,2", JOB_SLURM, -1, "0, 2, \"gpu:1\"? (SLURM_JOB_GPUS)"},
        {"", JOB_FLUX, -1, "all GPUs"},
        {"CUDA_VISIBLE_DEVICES=", JOB_FLUX, -1, "none (CUDA_VISIBLE_DEVICES)"},
        {"CUDA_VISIBLE_DEVICES=-1", JOB_FLUX, -1, "none (CUDA_VISIBLE_DEVICES)"},
        {"CUDA_VISIBLE_DEVICES=0,-1,1", JOB_FLUX, -1, "0 (CUDA_VISIBLE_DEVICES)"},
        {"CUDA_VISIBLE_DEVICES= 1 , 0", JOB_FLUX, -1, "1, 0 (CUDA_VISIBLE_DEVICES)"},
        {"CUDA_VISIBLE_DEVICES=MIG-GPU-aa/1/0", JOB_FLUX, -1, "MIG-GPU-aa/1/0 (CUDA_VISIBLE_DEVICES)"},
        {"CUDA_VISIBLE_DEVICES=MIG-GPU-aa/1", JOB_FLUX, -1, "\"MIG-GPU-aa/1\"? (CUDA_VISIBLE_DEVICES)"},
        {"CUDA_VISIBLE_DEVICES=0,x,1", JOB_FLUX, -1, "0, \"x\"? (CUDA_VISIBLE_DEVICES)"},
        {"CUDA_VISIBLE_DEVICES=0-999999", JOB_FLUX, -1, "\"0-999999\"? (CUDA_VISIBLE_DEVICES)"},
        {"CUDA_VISIBLE_DEVICES=99999999999999999999", JOB_FLUX, -1, "\"99999999999999999999\"? (CUDA_VISIBLE_DEVICES)"},
        {"SLURM_STEP_GPUS=0", JOB_FLUX, -1, "all GPUs"},
        {"CUDA_VISIBLE_DEVICES=0", JOB_STANDALONE, -1, "all GPUs"},
        {"CUDA_VISIBLE_DEVICES=0", JOB_KUBERNETES, -1, "all GPUs"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        BUF_AUTO struct buf out;
        buf_init(&out, 4096);
        describe(rows[i].environment, rows[i].kind, rows[i].device, &out);
        if (strcmp(buf_cstr(&out), rows[i].want) != 0)
            fail_msg("row %zu: %s, want %s", i, buf_cstr(&out), rows[i].want);
    }
}

static void test_the_context_comes_from_the_environments_own_variables(void **state)
{
    (void)state;
    static const char all[] = "SLURM_JOB_ID=42;SLURM_PROCID=3;SLURM_JOB_PARTITION=gpu;SLURMD_NODENAME=n1;"
                              "FLUX_JOB_ID=f7;FLUX_TASK_RANK=5;FLUX_URI=local:///run/flux;NODE_NAME=k1;POD_NAME=p;"
                              "POD_NAMESPACE=ns";
    static const struct {
        enum job_environment kind;
        const char *environment, *node, *job_id, *partition, *pod, *ns, *uri;
        int64_t rank;
    } rows[] = {
        {JOB_SLURM, all, "n1", "42", "gpu", "", "", "", 3},
        {JOB_SLURM, "SLURM_NODENAME=n2;SLURMD_NODENAME=n1", "n2", "", "", "", "", "", -1},
        {JOB_SLURM, "SLURM_PROCID=x", "host", "", "", "", "", "", -1},
        {JOB_FLUX, all, "host", "f7", "", "", "", "local:///run/flux", 5},
        {JOB_KUBERNETES, all, "k1", "", "", "p", "ns", "", -1},
        {JOB_STANDALONE, all, "host", "", "", "", "", "", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_plan plan;
        job_plan_init(&plan, rows[i].kind, -1, "host", lookup, (void *)(uintptr_t)rows[i].environment);
        assert_string_equal(plan.node, rows[i].node);
        assert_string_equal(plan.job_id, rows[i].job_id);
        assert_string_equal(plan.partition, rows[i].partition);
        assert_string_equal(plan.pod, rows[i].pod);
        assert_string_equal(plan.ns, rows[i].ns);
        assert_string_equal(plan.flux_uri, rows[i].uri);
        assert_int_equal(plan.task_rank, rows[i].rank);
        job_plan_fini(&plan);
    }
}

/* ---- devices ---- */

/* Two models, not in the order of their PCI ids; the third is divided. */
static const struct job_seen node[] = {
    {"GPU-aa1", "", "00000000:3B:00.0", "H100", 0, -1, -1},
    {"GPU-aa2", "", "00000000:1B:00.0", "T4", 1, -1, -1},
    {"GPU-bb1", "", "00000000:5E:00.0", "H100", 2, -1, -1},
    {"MIG-c1", "GPU-bb1", "", "H100", 2, 1, 0},
    {"MIG-c2", "GPU-bb1", "", "H100", 2, 7, 0},
};

/* The devices that are chosen, as digits; and what is remarked. */
static void match(const char *environment, int64_t device, size_t n, char chosen[8], struct buf *note, size_t *missing)
{
    struct job_plan plan;
    bool is_chosen[8];
    size_t len = 0;
    job_plan_init(&plan, JOB_SLURM, device, "host", lookup, (void *)(uintptr_t)environment);
    *missing = job_match(&plan, node, n, is_chosen, note);
    for (size_t i = 0; i < n; i++)
        if (is_chosen[i])
            chosen[len++] = (char)('0' + i);
    chosen[len] = '\0';
    job_plan_fini(&plan);
}

static void test_a_plan_finds_its_devices(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        int64_t device;
        size_t n;
        const char *chosen;
        size_t missing;
        const char *note; /* part of it; "" nothing at all */
    } rows[] = {
        {"", -1, 5, "01234", 0, ""},
        {"", 1, 5, "1", 0, ""},
        {"", 2, 5, "234", 0, ""},
        {"", 9, 5, "", 1, "not here: 9 (--device)"},
        {"SLURM_JOB_GPUS=0,2", -1, 5, "0234", 0, ""},
        {"SLURM_JOB_GPUS=1,7,8", -1, 2, "1", 2, "not here: 7, 8 (SLURM_JOB_GPUS)"},
        /* a cgroup shows the job's alone */
        {"SLURM_JOB_GPUS=4,7", -1, 2, "01", 0, ""},
        {"SLURM_STEP_GPUS=3", -1, 1, "0", 0, ""},
        {"SLURM_STEP_GPUS=3", -1, 2, "", 1, "not here: 3"},
        {"SLURM_STEP_GPUS=0", -1, 2, "0", 0, ""},
        /* CUDA counts by bus where it is told to, by speed otherwise */
        {"CUDA_DEVICE_ORDER=PCI_BUS_ID;CUDA_VISIBLE_DEVICES=0", -1, 5, "1", 0, ""},
        {"CUDA_DEVICE_ORDER=PCI_BUS_ID;CUDA_VISIBLE_DEVICES=1", -1, 5, "0", 0, ""},
        {"CUDA_VISIBLE_DEVICES=0", -1, 5, "1", 0, "several models"},
        {"CUDA_VISIBLE_DEVICES=0", -1, 1, "0", 0, ""},
        {"CUDA_DEVICE_ORDER=PCI_BUS_ID;CUDA_VISIBLE_DEVICES=3", -1, 5, "", 1, "not here: 3 (CUDA_VISIBLE_DEVICES)"},
        /* names */
        {"CUDA_VISIBLE_DEVICES=GPU-bb", -1, 5, "234", 0, ""},
        {"CUDA_VISIBLE_DEVICES=GPU-aa", -1, 5, "", 1, "not here: GPU-aa"},
        {"CUDA_VISIBLE_DEVICES=GPU-aa1,GPU-zz", -1, 5, "0", 1, "not here: GPU-zz"},
        {"CUDA_VISIBLE_DEVICES=MIG-c2", -1, 5, "4", 0, ""},
        {"CUDA_VISIBLE_DEVICES=MIG-GPU-bb1/1/0", -1, 5, "3", 0, ""},
        {"CUDA_VISIBLE_DEVICES=MIG-GPU-bb1/1/1", -1, 5, "", 1, "not here: MIG-GPU-bb1/1/1"},
        {"SLURM_STEP_GPUS=0;CUDA_VISIBLE_DEVICES=MIG-c1,x", -1, 5, "3", 1, "not here: \"x\""},
        {"CUDA_VISIBLE_DEVICES=-1", -1, 5, "", 0, ""},
        {"CUDA_VISIBLE_DEVICES=0", -1, 0, "", 1, "not here: 0"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char chosen[8];
        size_t missing;
        BUF_AUTO struct buf note;
        buf_init(&note, 4096);
        match(rows[i].environment, rows[i].device, rows[i].n, chosen, &note, &missing);
        bool is_note = *rows[i].note ? strstr(buf_cstr(&note), rows[i].note) != NULL : note.len == 0;
        if (strcmp(chosen, rows[i].chosen) != 0 || missing != rows[i].missing || !is_note)
            fail_msg("row %zu: devices \"%s\", %zu missing, %s", i, chosen, missing, buf_cstr(&note));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_environment_is_the_first_that_shows),
        cmocka_unit_test(test_environments_have_the_names_that_parsers_know),
        cmocka_unit_test(test_the_plan_is_what_scheduler_and_cuda_say),
        cmocka_unit_test(test_the_context_comes_from_the_environments_own_variables),
        cmocka_unit_test(test_a_plan_finds_its_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
