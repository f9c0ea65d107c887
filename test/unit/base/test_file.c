/* Whole files and the sign that one was replaced. */
#include "base/base.h"

#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder of its own for each test; files a and b in it. */
struct fixture {
    char folder[64], a[80], b[80];
};

static int set_up(void **state)
{
    struct fixture *f = mem_new(struct fixture);
    (void)snprintf(f->folder, sizeof(f->folder), "/tmp/test-file-%s", "XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    (void)snprintf(f->a, sizeof(f->a), "%s/a", f->folder);
    (void)snprintf(f->b, sizeof(f->b), "%s/b", f->folder);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    (void)unlink(f->a);
    (void)unlink(f->b);
    (void)rmdir(f->folder);
    free(f);
    return 0;
}

static void write_file(const char *path, const char *text, size_t len)
{
    FD_AUTO int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
}

static void test_file_is_read_whole_and_appended(void **state)
{
    const struct fixture *f = (const struct fixture *)*state;
    struct err e = {0};
    BUF_AUTO struct buf content;
    buf_init(&content, 1 << 20);
    MEM_AUTO char *large = (char *)mem_new_array(20000, 1);
    memset(large, 'x', 20000);
    write_file(f->a, large, 20000);
    write_file(f->b, "a\0b", 3);
    assert_int_equal(file_read(f->a, &content, &e), 0);
    assert_int_equal(file_read(f->b, &content, &e), 0);
    assert_int_equal(content.len, 20003);
    assert_memory_equal(content.data, large, 20000);
    assert_memory_equal(content.data + 20000, "a\0b", 3);
}

static void test_file_as_large_as_the_ceiling_fits(void **state)
{
    const struct fixture *f = (const struct fixture *)*state;
    struct err e = {0};
    BUF_AUTO struct buf content;
    buf_init(&content, 10);
    write_file(f->a, "1234567890", 10);
    assert_int_equal(file_read(f->a, &content, &e), 0);
    assert_string_equal(buf_cstr(&content), "1234567890");
}

static void test_larger_file_is_refused_and_leaves_the_content(void **state)
{
    const struct fixture *f = (const struct fixture *)*state;
    struct err e = {0};
    BUF_AUTO struct buf content;
    buf_init(&content, 10);
    (void)buf_append_str(&content, "before");
    write_file(f->a, "12345", 5);
    assert_int_equal(file_read(f->a, &content, &e), -1);
    assert_int_equal(e.class, ERR_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(e.text, "larger than the limit of 10 bytes"));
    assert_string_equal(buf_cstr(&content), "before");
}

static void test_missing_file_is_not_found_and_named(void **state)
{
    const struct fixture *f = (const struct fixture *)*state;
    struct err e = {0};
    BUF_AUTO struct buf content;
    buf_init(&content, 10);
    assert_int_equal(file_read(f->a, &content, &e), -1);
    assert_int_equal(e.class, ERR_NOT_FOUND);
    assert_non_null(strstr(e.text, f->a));
    assert_non_null(strstr(e.text, "No such file or directory"));
}

static void test_folder_is_not_a_file(void **state)
{
    const struct fixture *f = (const struct fixture *)*state;
    struct err e = {0};
    BUF_AUTO struct buf content;
    buf_init(&content, 10);
    assert_int_equal(file_read(f->folder, &content, &e), -1);
    assert_int_equal(e.class, ERR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "Is a directory"));
}

static void test_stamp_changes_when_the_file_does(void **state)
{
    const struct fixture *f = (const struct fixture *)*state;
    struct file_stamp first, same, longer;
    write_file(f->a, "1", 1);
    assert_int_equal(file_stamp(f->a, &first), 0);
    assert_int_equal(file_stamp(f->a, &same), 0);
    assert_memory_equal(&first, &same, sizeof(first));
    write_file(f->a, "12", 2);
    assert_int_equal(file_stamp(f->a, &longer), 0);
    assert_memory_not_equal(&first, &longer, sizeof(first));
}

static void test_stamp_changes_when_another_file_takes_the_name(void **state)
{
    const struct fixture *f = (const struct fixture *)*state;
    struct file_stamp first, replaced;
    write_file(f->a, "1", 1);
    write_file(f->b, "2", 1);
    assert_int_equal(file_stamp(f->a, &first), 0);
    assert_int_equal(rename(f->b, f->a), 0);
    assert_int_equal(file_stamp(f->a, &replaced), 0);
    assert_true(replaced.inode != first.inode);
}

static void test_stamp_follows_a_swapped_link(void **state)
{
    const struct fixture *f = (const struct fixture *)*state;
    struct file_stamp first, swapped;
    assert_int_equal(symlink("/dev/null", f->a), 0);
    assert_int_equal(file_stamp(f->a, &first), 0);
    assert_int_equal(unlink(f->a), 0);
    assert_int_equal(symlink("/dev/zero", f->a), 0);
    assert_int_equal(file_stamp(f->a, &swapped), 0);
    assert_memory_not_equal(&first, &swapped, sizeof(first));
}

static void test_stamp_of_nothing_is_zero(void **state)
{
    const struct fixture *f = (const struct fixture *)*state;
    static const struct file_stamp none;
    struct file_stamp stamp;
    memset(&stamp, 1, sizeof(stamp));
    assert_int_equal(file_stamp(f->a, &stamp), -1);
    assert_memory_equal(&stamp, &none, sizeof(none));
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_folder(test_file_is_read_whole_and_appended),
        with_folder(test_file_as_large_as_the_ceiling_fits),
        with_folder(test_larger_file_is_refused_and_leaves_the_content),
        with_folder(test_missing_file_is_not_found_and_named),
        with_folder(test_folder_is_not_a_file),
        with_folder(test_stamp_changes_when_the_file_does),
        with_folder(test_stamp_changes_when_another_file_takes_the_name),
        with_folder(test_stamp_follows_a_swapped_link),
        with_folder(test_stamp_of_nothing_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
