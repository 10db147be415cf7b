/* SPDX-License-Identifier: Apache-2.0
 *
 * The store of tuning results: entries can be read by another process, two writers keep each
 * other's entries, damaged and hostile files count as empty, limits hold, a read-only disk stops
 * nobody, a failing allocation leaks and loses nothing, and what tools see.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catena/tune.h>

#include "base/base.h"
#include "support/check.h"
#include "support/ok.h"

#include <cmocka.h>

static char top[512]; /* a folder of this test's own */

/* The absolute path of a store's folder below it. */
static const char *below(const char *name)
{
    static char path[640];
    snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

static ctn__store *opened(const char *folder, const char *machine)
{
    ctn__store *s;
    OK(ctn__store_open(&s, machine, &(ctn__store_opt){.folder = folder}));
    return s;
}

static void put_and_save(const char *folder, const char *machine, const char *key,
                         const char *value)
{
    ctn__store *s = opened(folder, machine);
    OK(ctn__store_put(s, key, value));
    OK(ctn__store_save(s));
    assert_null(ctn__store_problem(s));
    ctn__store_close(s);
}

/* The path of the only file of a machine. */
static const char *file_of(const char *folder, const char *machine)
{
    static char path[800];
    ctn__hash128 h = ctn__hash(machine, strlen(machine));
    snprintf(path, sizeof path, "%s/tune-%016llx%016llx.txt", folder, (unsigned long long)h.hi,
             (unsigned long long)h.lo);
    return path;
}

static void write_raw(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static bool there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void what_is_put_comes_back(void **state)
{
    (void)state;
    char folder[640];
    snprintf(folder, sizeof folder, "%s", below("a/b/c")); /* created with its parents */
    ctn__store *s = opened(folder, "cpu 1");
    assert_null(ctn__store_find(s, "conv 3x3"));
    assert_null(ctn__store_problem(s));
    OK(ctn__store_put(s, "conv 3x3", "matmul 1234us"));
    OK(ctn__store_put(s, "conv 1x1", "direct 9us"));
    OK(ctn__store_put(s, "conv 3x3", "direct 1000us")); /* the later one wins */
    assert_string_equal(ctn__store_find(s, "conv 3x3"), "direct 1000us");
    assert_false(there(folder)); /* only save writes */
    OK(ctn__store_save(s));
    assert_string_equal(ctn__store_find(s, "conv 3x3"), "direct 1000us");
    ctn__store_close(s);
    s = opened(folder, "cpu 1");
    assert_string_equal(ctn__store_find(s, "conv 3x3"), "direct 1000us");
    assert_string_equal(ctn__store_find(s, "conv 1x1"), "direct 9us");
    assert_null(ctn__store_find(s, "conv 3x"));
    assert_null(ctn__store_find(s, ""));
    OK(ctn__store_save(s)); /* nothing new, so nothing is written */
    ctn__store_close(s);
    s = opened(folder, "cpu 2"); /* another machine does not know it */
    assert_null(ctn__store_find(s, "conv 3x3"));
    ctn__store_close(s);
    ctn__store_close(NULL);
}

static void many_entries(void **state)
{
    (void)state;
    char folder[640], key[32], value[32];
    snprintf(folder, sizeof folder, "%s", below("many"));
    ctn__store *s = opened(folder, "m");
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        snprintf(value, sizeof value, "v%d", i * 7);
        OK(ctn__store_put(s, key, value));
    }
    OK(ctn__store_save(s));
    ctn__store_close(s);
    s = opened(folder, "m");
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        snprintf(value, sizeof value, "v%d", i * 7);
        assert_string_equal(ctn__store_find(s, key), value);
    }
    ctn__store_close(s);
}

static void text_that_cannot_be_kept(void **state)
{
    (void)state;
    ctn__store *s = opened(below("text"), "line\nbreak\tand \xff bytes");
    const char *const bad[] = {"", "a\tb", "a\nb", "\x01", "\x7f", "\xc3\xa4"};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(ctn__store_put(s, bad[i], "v"), CTN_EARG);
        assert_int_equal(ctn__store_put(s, "k", bad[i]), CTN_EARG);
        ctn_error_clear();
    }
    assert_null(ctn__store_find(s, "k"));
    OK(ctn__store_put(s, "k", "v"));
    OK(ctn__store_save(s));
    ctn__store_close(s);
    s = opened(below("text"), "line\nbreak\tand \xff bytes");
    assert_string_equal(ctn__store_find(s, "k"), "v");
    ctn__store_close(s);
    s = opened(below("text"), ""); /* an empty machine name is valid */
    OK(ctn__store_put(s, "k", "w"));
    OK(ctn__store_save(s));
    ctn__store_close(s);
    s = opened(below("text"), "");
    assert_string_equal(ctn__store_find(s, "k"), "w");
    ctn__store_close(s);
}

static void writers_keep_each_others_entries(void **state)
{
    (void)state;
    char folder[640];
    snprintf(folder, sizeof folder, "%s", below("two"));
    put_and_save(folder, "m", "old", "0");
    ctn__store *a = opened(folder, "m"), *b = opened(folder, "m");
    OK(ctn__store_put(a, "x", "1"));
    OK(ctn__store_put(a, "both", "a"));
    OK(ctn__store_put(b, "y", "2"));
    OK(ctn__store_put(b, "both", "b"));
    OK(ctn__store_save(a));
    assert_null(ctn__store_find(b, "x"));
    OK(ctn__store_save(b));
    assert_string_equal(ctn__store_find(b, "x"), "1"); /* visible from now on */
    OK(ctn__store_put(a, "z", "3"));
    OK(ctn__store_save(a));
    assert_string_equal(ctn__store_find(a, "both"), "b"); /* the later save wins */
    ctn__store_close(a);
    ctn__store_close(b);
    a = opened(folder, "m");
    assert_string_equal(ctn__store_find(a, "old"), "0");
    assert_string_equal(ctn__store_find(a, "x"), "1");
    assert_string_equal(ctn__store_find(a, "y"), "2");
    assert_string_equal(ctn__store_find(a, "z"), "3");
    assert_int_equal(unlink(file_of(folder, "m")), 0); /* removed entries do not come back */
    OK(ctn__store_put(a, "new", "4"));
    OK(ctn__store_save(a));
    ctn__store_close(a);
    a = opened(folder, "m");
    assert_null(ctn__store_find(a, "old"));
    assert_string_equal(ctn__store_find(a, "new"), "4");
    ctn__store_close(a);
}

static void equal_choices_are_written_once(void **state)
{
    (void)state;
    char folder[640];
    struct stat first, second;
    snprintf(folder, sizeof folder, "%s", below("equal"));
    ctn__store *a = opened(folder, "m"), *b = opened(folder, "m");
    OK(ctn__store_put(a, "x", "1"));
    OK(ctn__store_put(b, "x", "1"));
    OK(ctn__store_save(a));
    assert_int_equal(stat(file_of(folder, "m"), &first), 0);
    OK(ctn__store_save(b));
    assert_int_equal(stat(file_of(folder, "m"), &second), 0);
    assert_int_equal(first.st_ino, second.st_ino); /* a written file would be a new one */
    OK(ctn__store_put(b, "x", "2"));
    OK(ctn__store_save(b));
    ctn__store_close(a);
    ctn__store_close(b);
    a = opened(folder, "m");
    assert_string_equal(ctn__store_find(a, "x"), "2");
    ctn__store_close(a);
}

static void processes_at_the_same_time(void **state)
{
    (void)state;
    enum { CHILDREN = 4, SAVES = 2 };
    char folder[640], key[48];
    pid_t child[CHILDREN];
    snprintf(folder, sizeof folder, "%s", below("processes"));
    for (int c = 0; c < CHILDREN; c++) {
        child[c] = fork();
        assert_true(child[c] >= 0);
        if (child[c] > 0) continue;
        for (int i = 0; i < SAVES; i++) {
            snprintf(key, sizeof key, "child %d save %d", c, i);
            put_and_save(folder, "m", key, "done");
        }
        _exit(0);
    }
    for (int c = 0; c < CHILDREN; c++) {
        int code = 1;
        assert_int_equal(waitpid(child[c], &code, 0), child[c]);
        assert_int_equal(code, 0);
    }
    ctn__store *s = opened(folder, "m");
    for (int c = 0; c < CHILDREN; c++)
        for (int i = 0; i < SAVES; i++) {
            snprintf(key, sizeof key, "child %d save %d", c, i);
            if (!ctn__store_find(s, key)) fail_msg("%s is lost", key);
        }
    ctn__store_close(s);
}

static void damaged_files_count_as_empty(void **state)
{
    (void)state;
    char folder[640], path[800];
    snprintf(folder, sizeof folder, "%s", below("damaged"));
    put_and_save(folder, "m", "k", "v");
    snprintf(path, sizeof path, "%s", file_of(folder, "m"));
#define RAW(text) {text, sizeof(text) - 1}
    const struct {
        const char *text;
        size_t n;
    } raw[] = {
        RAW(""),
        RAW("\n"),
        RAW("catena-tune 1"),
        RAW("catena-tune 1\n"),
        RAW("catena-tune 1\t\nk\tv\n"),
        RAW("catena-tune 2\tm\nk\tv\n"),            /* another version */
        RAW("catena-tune 1\tn\nk\tv\n"),            /* another machine */
        RAW("catena-tune 1\tmm\nk\tv\n"),           /* its name is longer */
        RAW("catena-tune 1\tm\nk\tv"),              /* truncated */
        RAW("catena-tune 1\tm\nk\tv\nk2"),          /* truncated */
        RAW("catena-tune 1\tm\nk\tv\n\n"),          /* an empty line */
        RAW("catena-tune 1\tm\nk\tv\n\tv\n"),       /* no key */
        RAW("catena-tune 1\tm\nk\tv\nk2\t\n"),      /* no value */
        RAW("catena-tune 1\tm\nk\tv\nk2\tv\tw\n"),  /* too many fields */
        RAW("catena-tune 1\tm\nk\tv\nk2 v\n"),      /* too few fields */
        RAW("catena-tune 1\tm\nk\tv\nk\0x\tv\n"),   /* not text */
        RAW("catena-tune 1\tm\nk\tv\nk2\t\x80v\n"), /* not text */
        RAW("catena-tune 1\tm\r\nk\tv\r\n"),        /* not ours */
        RAW("\x7f"
            "ELF\0\0\0\0\0\0\0\0\0\0\0\0\0"), /* not ours at all */
    };
    for (size_t i = 0; i < sizeof raw / sizeof *raw; i++) {
        write_raw(path, raw[i].text, raw[i].n);
        ctn__store *s = opened(folder, "m");
        if (ctn__store_find(s, "k")) fail_msg("case %zu was accepted", i);
        assert_null(ctn__store_problem(s));
        OK(ctn__store_put(s, "new", "1")); /* the bad file is replaced */
        OK(ctn__store_save(s));
        ctn__store_close(s);
        s = opened(folder, "m");
        assert_string_equal(ctn__store_find(s, "new"), "1");
        assert_null(ctn__store_find(s, "k"));
        ctn__store_close(s);
    }
    const char twice[] = "catena-tune 1\tm\nk\tv\nk\tw\n"; /* valid: the later one counts */
    write_raw(path, twice, sizeof twice - 1);
    ctn__store *s = opened(folder, "m");
    assert_string_equal(ctn__store_find(s, "k"), "w");
    ctn__store_close(s);
}

/* Every prefix of a good file, and every byte of it changed: used completely or not at all, but
 * never a crash. */
static void cut_and_flipped_files(void **state)
{
    (void)state;
    char folder[640], path[800];
    const char good[] = "catena-tune 1\tm\nconv a\tmatmul 12us\nconv b\tdirect 3us\n";
    const size_t n = sizeof good - 1;
    snprintf(folder, sizeof folder, "%s", below("cut"));
    put_and_save(folder, "m", "k", "v");
    snprintf(path, sizeof path, "%s", file_of(folder, "m"));
    for (size_t i = 0; i <= n; i++) {
        write_raw(path, good, i);
        ctn__store *s = opened(folder, "m");
        const char *a = ctn__store_find(s, "conv a");
        if (a) assert_string_equal(a, "matmul 12us");
        bool lines = i > 16 && good[i - 1] == '\n';
        assert_true((a != NULL) == lines);
        ctn__store_close(s);
    }
    for (size_t i = 0; i < 8 * n; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        text[i / 8] = (char)(text[i / 8] ^ 1 << i % 8);
        write_raw(path, text, n);
        ctn__store *s = opened(folder, "m");
        OK(ctn__store_put(s, "k", "v"));
        OK(ctn__store_save(s));
        ctn__store_close(s);
    }
}

static void places_that_are_no_files(void **state)
{
    (void)state;
    char folder[640], path[800];
    snprintf(folder, sizeof folder, "%s", below("places"));
    put_and_save(folder, "m", "k", "v");
    snprintf(path, sizeof path, "%s", file_of(folder, "m"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* does not hang */
    ctn__store *s = opened(folder, "m");
    assert_null(ctn__store_find(s, "k"));
    ctn__store_close(s);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/zero", path), 0); /* does not read forever */
    s = opened(folder, "m");
    OK(ctn__store_put(s, "k", "v"));
    OK(ctn__store_save(s)); /* the link itself is replaced */
    ctn__store_close(s);
    s = opened(folder, "m");
    assert_string_equal(ctn__store_find(s, "k"), "v");
    ctn__store_close(s);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0); /* cannot be replaced */
    s = opened(folder, "m");
    OK(ctn__store_put(s, "k", "v"));
    OK(ctn__store_save(s));
    assert_non_null(strstr(ctn__store_problem(s), "cannot write"));
    assert_string_equal(ctn__store_find(s, "k"), "v");
    ctn__store_close(s);
    assert_int_equal(rmdir(path), 0);
}

static void a_disk_that_cannot_be_written(void **state)
{
    (void)state;
    write_raw(below("plain"), "x", 1);
    ctn__store *s = opened(below("plain/folder"), "m"); /* below a file: impossible even for root */
    assert_null(ctn__store_problem(s));
    OK(ctn__store_put(s, "k", "v"));
    OK(ctn__store_save(s));
    const char *p = ctn__store_problem(s);
    assert_non_null(p);
    assert_non_null(strstr(p, "kept in memory only"));
    assert_null(strchr(p, '\n'));
    assert_string_equal(ctn__store_find(s, "k"), "v");
    assert_int_equal(ctn_error_status(), CTN_OK); /* not an error for the program */
    OK(ctn__store_save(s));                       /* tried again */
    assert_non_null(ctn__store_problem(s));
    assert_int_equal(unlink(below("plain")), 0);
    OK(ctn__store_save(s)); /* now it works */
    assert_null(ctn__store_problem(s));
    ctn__store_close(s);
    s = opened(below("plain/folder"), "m");
    assert_string_equal(ctn__store_find(s, "k"), "v");
    ctn__store_close(s);
}

/* ---- limits --------------------------------------------------------------------------------- */

static void age(const char *path, time_t seconds)
{
    struct timeval t[2] = {{.tv_sec = 1000000 + seconds}, {.tv_sec = 1000000 + seconds}};
    assert_int_equal(utimes(path, t), 0);
}

static void oldest_files_go(void **state)
{
    (void)state;
    char folder[640], name[16], other[800];
    snprintf(folder, sizeof folder, "%s", below("limits"));
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "m%d", i);
        put_and_save(folder, name, "k", "v");
        age(file_of(folder, name), i);
    }
    snprintf(other, sizeof other, "%s/tune-mine.txt", folder); /* not ours: never touched */
    write_raw(other, "precious", 8);
    age(other, -100);
    char left[840]; /* left by a crash */
    snprintf(left, sizeof left, "%s.tmp-1-0", file_of(folder, "m0"));
    write_raw(left, "half", 4);
    age(left, -50);
    ctn__store *s;
    OK(ctn__store_open(&s, "m1", &(ctn__store_opt){.folder = folder, .max_files = 3}));
    OK(ctn__store_put(s, "k", "w"));
    OK(ctn__store_save(s)); /* m1 is the newest now */
    assert_null(ctn__store_problem(s));
    ctn__store_close(s);
    assert_false(there(left));
    assert_false(there(file_of(folder, "m0")));
    assert_true(there(file_of(folder, "m1")));
    assert_false(there(file_of(folder, "m2")));
    assert_true(there(file_of(folder, "m3")));
    assert_true(there(file_of(folder, "m4")));
    assert_true(there(other));
    /* A file has 17 + 4 bytes: two of them are allowed. */
    OK(ctn__store_open(&s, "m4", &(ctn__store_opt){.folder = folder, .max_bytes = 45}));
    OK(ctn__store_put(s, "k", "w"));
    OK(ctn__store_save(s));
    ctn__store_close(s);
    assert_true(there(file_of(folder, "m1")));
    assert_false(there(file_of(folder, "m3")));
    assert_true(there(file_of(folder, "m4")));
    assert_true(there(other));
    /* A file that alone exceeds the limit is neither written nor read. */
    OK(ctn__store_open(&s, "m1", &(ctn__store_opt){.folder = folder, .max_bytes = 20}));
    assert_null(ctn__store_find(s, "k"));
    OK(ctn__store_put(s, "long", "value"));
    OK(ctn__store_save(s));
    assert_non_null(ctn__store_problem(s));
    assert_string_equal(ctn__store_find(s, "long"), "value");
    ctn__store_close(s);
    s = opened(folder, "m1");
    assert_string_equal(ctn__store_find(s, "k"), "w");
    ctn__store_close(s);
}

/* ---- the environment, and what tools see ---------------------------------------------------- */

static void environment(const char *cache, const char *xdg, const char *tmp)
{
    unsetenv("CATENA_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    unsetenv("TMPDIR");
    if (cache) setenv("CATENA_CACHE_DIR", cache, 1);
    if (xdg) setenv("XDG_CACHE_HOME", xdg, 1);
    if (tmp) setenv("TMPDIR", tmp, 1);
}

static void assert_folder(const char *want)
{
    char buf[64];
    assert_int_equal(ctn_tune_folder(buf, sizeof buf), (int)strlen(want));
    assert_string_equal(buf, want);
    assert_int_equal(ctn_tune_folder(NULL, 0), (int)strlen(want));
}

static ctn_status nothing(void *user, const ctn_tune_file *f, const char *key, const char *value)
{
    (void)user, (void)f, (void)key, (void)value;
    fail_msg("there is no file");
    return CTN_OK;
}

static void folder_by_the_environment(void **state)
{
    (void)state;
    environment("/c", "/x", "/t");
    assert_folder("/c");
    environment(NULL, "/x", "/t");
    assert_folder("/x/catena");
    environment("", "rel", "/t");
    assert_folder("/t/catena");
    setenv("HOME", "/h", 1);
    assert_folder("/h/.cache/catena");
    environment("none", "/x", "/t");
    assert_folder("");
    environment(NULL, NULL, NULL);
    assert_folder("");
    OK(ctn_tune_visit(nothing, NULL));
    int64_t files = 7;
    OK(ctn_tune_clear(&files));
    assert_int_equal(files, 0);
    ctn__store *s;
    OK(ctn__store_open(&s, "m", NULL)); /* no folder: in memory */
    OK(ctn__store_put(s, "k", "v"));
    OK(ctn__store_save(s));
    assert_string_equal(ctn__store_find(s, "k"), "v");
    assert_non_null(strstr(ctn__store_problem(s), "CATENA_CACHE_DIR"));
    ctn__store_close(s);
    environment(NULL, below("xdg"), NULL);
    OK(ctn_tune_visit(nothing, NULL)); /* does not exist yet */
    OK(ctn__store_open(&s, "m", NULL));
    OK(ctn__store_put(s, "k", "v"));
    OK(ctn__store_save(s));
    assert_null(ctn__store_problem(s));
    ctn__store_close(s);
    assert_true(there(file_of(below("xdg/catena"), "m")));
    /* a folder that others can write to, as anybody could make below TMPDIR */
    environment(NULL, NULL, below("shared"));
    assert_int_equal(mkdir(below("shared"), 0777), 0);
    assert_int_equal(mkdir(below("shared/catena"), 0700), 0);
    assert_int_equal(chmod(below("shared/catena"), 0777), 0);
    assert_folder("");
    OK(ctn__store_open(&s, "m", NULL));
    OK(ctn__store_put(s, "k", "v"));
    OK(ctn__store_save(s));
    assert_non_null(strstr(ctn__store_problem(s), "only you can change"));
    ctn__store_close(s);
    assert_int_equal(rmdir(below("shared/catena")), 0);
    assert_int_equal(rmdir(below("shared")), 0);
    environment(below("xdg/catena/nothing/here"), NULL, NULL);
    OK(ctn_tune_visit(nothing, NULL));
    environment(file_of(below("xdg/catena"), "m"), NULL, NULL); /* a file */
    assert_int_equal(ctn_tune_visit(nothing, NULL), CTN_EIO);
    ctn_error_clear();
    environment(NULL, NULL, NULL);
}

typedef struct {
    int files, damaged, entries, stop;
    char first[32];
} seen;

static ctn_status see(void *user, const ctn_tune_file *f, const char *key, const char *value)
{
    seen *s = user;
    assert_true(f->bytes > 0 && f->path[0] == '/' && f->modified > 0);
    if (!key) {
        assert_null(value);
        if (s->files == 0) snprintf(s->first, sizeof s->first, "%s", f->machine ? f->machine : "?");
        s->files++;
        s->damaged += f->machine == NULL;
        assert_int_equal(f->entries, f->machine ? 2 : 0);
    } else {
        assert_non_null(f->machine);
        assert_non_null(value);
        s->entries++;
    }
    return s->stop > 0 && s->entries == s->stop ? CTN_END : CTN_OK;
}

static void tools_see_all(void **state)
{
    (void)state;
    char folder[640], path[840];
    snprintf(folder, sizeof folder, "%s", below("tools"));
    environment(folder, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        put_and_save(folder, i ? "new" : "old", "k1", "v1");
        put_and_save(folder, i ? "new" : "old", "k2", "v2");
        age(file_of(folder, i ? "new" : "old"), i);
    }
    write_raw(file_of(folder, "broken"), "x", 1);
    age(file_of(folder, "broken"), -1);
    snprintf(path, sizeof path, "%s.tmp-12-0", file_of(folder, "new"));
    write_raw(path, "x", 1);
    write_raw(below("tools/tune-notes.txt"), "x", 1);
    seen s = {0};
    OK(ctn_tune_visit(see, &s));
    assert_int_equal(s.files, 3);
    assert_int_equal(s.damaged, 1);
    assert_int_equal(s.entries, 4);
    assert_string_equal(s.first, "new");
    seen half = {.stop = 1};
    assert_int_equal(ctn_tune_visit(see, &half), CTN_END);
    assert_int_equal(half.files, 1);
    int64_t files;
    OK(ctn_tune_clear(&files));
    assert_int_equal(files, 3);
    assert_false(there(path)); /* left by a crash, removed too */
    assert_true(there(below("tools/tune-notes.txt")));
    OK(ctn_tune_visit(nothing, NULL));
    OK(ctn_tune_clear(NULL));
    environment(NULL, NULL, NULL);
}

/* ---- failing allocations --------------------------------------------------------------------- */

static failing_once memory;

static ctn_status count_entries(void *user, const ctn_tune_file *f, const char *key,
                                const char *value)
{
    (void)f, (void)value;
    *(int *)user += key != NULL;
    return CTN_OK;
}

static ctn_status scenario(const char *folder, int before)
{
    ctn_status st = CTN_OK;
    ctn__store *s = NULL;
    int n = 0;
    char key[32];
    CTN_TRY_GOTO(st, done,
                 ctn__store_open(&s, "m", &(ctn__store_opt){.folder = folder, .max_files = 2}));
    for (int i = 0; i < 40; i++) { /* more than the initial size of the table */
        snprintf(key, sizeof key, "key%d", i);
        CTN_TRY_GOTO(st, done, ctn__store_put(s, key, "value"));
    }
    CTN_TRY_GOTO(st, done, ctn__store_save(s));
    if (ctn__store_problem(s)) fail_msg("%s", ctn__store_problem(s));
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "key%d", i);
        assert_non_null(ctn__store_find(s, key));
    }
    CTN_TRY_GOTO(st, done, ctn__store_put(s, "one more", "value"));
    CTN_TRY_GOTO(st, done, ctn__store_save(s));
    CTN_TRY_GOTO(st, done, ctn_tune_visit(count_entries, &n));
    assert_int_equal(n, before + 41);
    CTN_TRY_GOTO(st, done, ctn_tune_clear(NULL));
    if (ctn_tune_folder(NULL, 0) < 0) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
done:
    ctn__store_close(s);
    return st;
}

/* Prepares a file with one entry, or not even the folder. */
static void prepare(const char *folder, int before)
{
    const char text[] = "catena-tune 1\tm\nbefore\tvalue\n";
    unlink(file_of(folder, "m"));
    rmdir(folder);
    rmdir(below("oom"));
    if (before == 0) return;
    assert_int_equal(mkdir(below("oom"), 0700), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    write_raw(file_of(folder, "m"), text, sizeof text - 1);
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    char folder[640];
    snprintf(folder, sizeof folder, "%s", below("oom/deep"));
    environment(folder, NULL, NULL);
    ctn_allocator a = {failing_once_alloc, failing_once_release, &memory};
    OK(ctn_set_allocator(&a));
    for (int before = 0; before < 2; before++) {
        memory.fail_at = 0;
        memory.calls = 0;
        prepare(folder, before);
        OK(scenario(folder, before));
        long all = memory.calls;
        for (memory.fail_at = 1; memory.fail_at <= all; memory.fail_at++) {
            ctn_error_clear();
            memory.calls = 0;
            prepare(folder, before);
            ctn_status st = scenario(folder, before);
            assert_int_equal(memory.live, 0);
            assert_int_equal(st, CTN_ENOMEM);
            assert_true(ctn_error_message()[0] != 0);
        }
        ctn_error_clear();
    }
    OK(ctn_set_allocator(NULL));
    environment(NULL, NULL, NULL);
}

static int begin(void **state)
{
    (void)state;
    char cwd[256], command[600];
    if (!getcwd(cwd, sizeof cwd)) return -1;
    snprintf(top, sizeof top, "%s/store-%ld", cwd, (long)getpid());
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command) == 0 && mkdir(top, 0700) == 0 ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_comes_back),
        cmocka_unit_test(many_entries),
        cmocka_unit_test(text_that_cannot_be_kept),
        cmocka_unit_test(writers_keep_each_others_entries),
        cmocka_unit_test(equal_choices_are_written_once),
        cmocka_unit_test(processes_at_the_same_time),
        cmocka_unit_test(damaged_files_count_as_empty),
        cmocka_unit_test(cut_and_flipped_files),
        cmocka_unit_test(places_that_are_no_files),
        cmocka_unit_test(a_disk_that_cannot_be_written),
        cmocka_unit_test(oldest_files_go),
        cmocka_unit_test(folder_by_the_environment),
        cmocka_unit_test(tools_see_all),
        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
