/* SPDX-License-Identifier: Apache-2.0
 *
 * catena info: version, build features, the machine, the core plan, and every environment
 * variable with its value and source. It makes a context, so an engine that cannot start or an
 * unknown CATENA_* variable shows up here.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <catena/env.h>
#include <catena/info.h>

#include "cli.h"

#ifndef CTN_YAML_VERSION
#define CTN_YAML_VERSION "" /* built without it */
#endif

/* Value of the first line "key : value" of a /proc file; "" if there is none. */
static void proc_line(const char *path, const char *key, char *value, size_t n)
{
    char line[4096];
    value[0] = 0;
    FILE *f = fopen(path, "r");
    if (!f) return;
    while (!value[0] && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0) continue;
        char *s = colon + 1 + strspn(colon + 1, " \t");
        s[strcspn(s, "\n")] = 0;
        snprintf(value, n, "%s", s);
    }
    fclose(f);
}

void cpu_name(char *buf, size_t n)
{
    proc_line("/proc/cpuinfo", "model name", buf, n);
    if (!buf[0]) snprintf(buf, n, "unknown");
}

typedef struct {
    ctn_machine m;
    char model[256]; /* of the CPU */
    char cpuset[256];
    char host[256];
    int threads; /* of the context */
} machine;

static ctn_status look(machine *out)
{
    ctn_context *ctx = NULL;
    ctn_machine_get(&out->m);
    cpu_name(out->model, sizeof out->model);
    proc_line("/proc/self/status", "Cpus_allowed_list", out->cpuset, sizeof out->cpuset);
    gethostname(out->host, sizeof out->host - 1);
    CTN_TRY(ctn_context_new(&ctx, NULL));
    out->threads = ctn_context_threads(ctx);
    ctn_context_free(ctx);
    return CTN_OK;
}

/* Variables of the OpenMP runtime that also affect Catena's threads. */
static const char *const omp_names[] = {"OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES",
                                        "OMP_WAIT_POLICY", NULL};

static ctn_status write_json(json *j, const machine *k)
{
    ctn_build_entry b;
    ctn_env_entry e;
    json_open(j, NULL, '{');
    json_text(j, "version", ctn_version_text());
    json_open(j, "build", '{');
    for (int i = 0; i < ctn_build_count(); i++) {
        CTN_TRY(ctn_build_get(i, &b));
        json_text(j, b.name, b.value[0] ? b.value : NULL);
    }
    json_text(j, "libyaml", CTN_YAML_VERSION[0] ? CTN_YAML_VERSION : NULL);
    json_close(j, '}');
    json_open(j, "machine", '{');
    json_text(j, "host", k->host);
    json_text(j, "cpu", k->model);
    json_int(j, "cpus", k->m.cpus);
    json_int(j, "cores", k->m.cores);
    json_int(j, "numa_nodes", k->m.numa);
    json_text(j, "cpuset", k->cpuset);
    json_close(j, '}');
    json_open(j, "core_plan", '{');
    json_int(j, "compute_threads", k->threads);
    json_text(j, "compute_threads_source", k->m.threads_source);
    json_int(j, "ranks_per_node", k->m.numa);
    json_int(j, "threads_per_rank", k->m.cores / k->m.numa);
    json_close(j, '}');
    json_open(j, "variables", '[');
    for (int i = 0; i < ctn_env_count(); i++) {
        CTN_TRY(ctn_env_get(i, &e));
        json_open(j, NULL, '{');
        json_text(j, "name", e.name);
        json_text(j, "value", e.value);
        json_text(j, "source", e.source);
        json_text(j, "type", e.type);
        json_text(j, "default", e.def);
        json_text(j, "help", e.help);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "openmp", '{');
    for (int i = 0; omp_names[i]; i++) json_text(j, omp_names[i], getenv(omp_names[i]));
    json_close(j, '}');
    json_close(j, '}');
    return CTN_OK;
}

ctn_status info_json(json *j)
{
    machine k = {0};
    CTN_TRY(look(&k));
    return write_json(j, &k);
}

static ctn_status print_text(const machine *k)
{
    ctn_build_entry b;
    ctn_env_entry e;
    say(stdout, "catena %s\n\nBuilt with\n", ctn_version_text());
    for (int i = 0; i < ctn_build_count(); i++) {
        CTN_TRY(ctn_build_get(i, &b));
        say(stdout, "  %-24s %-24s %s\n", b.name, b.value[0] ? b.value : "no", b.help);
    }
    say(stdout, "  %-24s %-24s %s\n", "libyaml", CTN_YAML_VERSION[0] ? CTN_YAML_VERSION : "no",
        "configuration files of the command");
    say(stdout, "\nMachine\n  %-24s %s\n", "cpu", k->model);
    say(stdout, "  %-24s %d on %d cores, %d NUMA node%s\n", "usable CPUs", k->m.cpus, k->m.cores,
        k->m.numa, k->m.numa == 1 ? "" : "s");
    say(stdout, "  %-24s %s\n", "cpuset", k->cpuset);
    say(stdout, "\nCore plan\n  %-24s %d, from %s\n", "compute threads", k->threads,
        k->m.threads_source);
    if (k->m.numa > 1)
        say(stdout,
            "  %-24s %d, one per NUMA node, with %d threads each (mpirun --map-by numa "
            "--bind-to numa)\n",
            "ranks per node", k->m.numa, k->m.cores / k->m.numa);
    say(stdout, "\nVariables\n");
    for (int i = 0; i < ctn_env_count(); i++) {
        CTN_TRY(ctn_env_get(i, &e));
        say(stdout, "  %-24s %-24s %s\n", e.name, e.value[0] ? e.value : "\"\"", e.source);
        say(stdout, "  %-24s %s\n", "", e.help);
    }
    for (int i = 0; omp_names[i]; i++) {
        const char *value = getenv(omp_names[i]);
        if (value) say(stdout, "  %-24s %-24s environment\n", omp_names[i], value);
    }
    return CTN_OK;
}

static int run(args *a)
{
    machine k = {0};
    json j = {0};
    ctn_status st = look(&k);
    if (st == CTN_OK) st = args_flag(a, "json") ? write_json(&j, &k) : print_text(&k);
    if (st < 0) return report_error("info");
    if (k.threads > k.m.cpus)
        report_warning(NULL, "there are more compute threads than CPUs, so they will wait for each "
                             "other: lower CATENA_THREADS or OMP_NUM_THREADS");
    return EXIT_DONE;
}

static const option options[] = {{"json", NULL, NULL, "print one JSON object", GROUP_NONE}, {0}};

const command cmd_info = {
    .name = "info",
    .operands = "",
    .summary =
        "Show the version, build features, the machine, the thread count and every variable.",
    .words = NULL,
    .options = options,
    .examples = "  catena info                     what Catena will use on this machine\n"
                "  OMP_NUM_THREADS=1 catena info   where the thread count comes from\n",
    .run = run,
};
