/* The main() of a fuzz target in builds without libFuzzer: runs every file of the folders and files named on the
 * command line through the target once, so that each build, whatever its compiler, keeps passing what once crashed. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, size_t size)
{
    uint8_t *data = malloc(size ? size : 1); /* exactly as large as the input: reading past it is caught */
    FILE *file = fopen(path, "rbe");
    size_t got = data && file ? fread(data, 1, size, file) : 0;
    if (file)
        (void)fclose(file);
    if (!data || !file || got != size)
        (void)fprintf(stderr, "cannot read %s\n", path);
    else
        (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return got == size ? 1 : 0;
}

static int replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return 0;
    if (!S_ISDIR(st.st_mode))
        return replay_file(path, (size_t)st.st_size);
    int n = 0;
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char inner[4096];
        if (entry->d_name[0] == '.')
            continue;
        if (snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) < (int)sizeof(inner))
            n += replay(inner);
    }
    if (dir)
        (void)closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++)
        n += replay(argv[i]);
    printf("%d inputs\n", n);
    return n > 0 ? 0 : 1;
}
