/* SPDX-License-Identifier: Apache-2.0
 *
 * catena: the command. Finds the subcommand in a table, parses its options and runs it. Also
 * installs the functions that print the library's warnings and notices.
 */
#include <string.h>

#include <catena/log.h>

#include "launch.h"
#include "memory.h"

static const command *const commands[] = {&cmd_train,         &cmd_eval,       &cmd_predict,
                                          &cmd_generate,      &cmd_export,     &cmd_pack,
                                          &cmd_bench,         &cmd_explain,    &cmd_tune,
                                          &cmd_info,          &cmd_selftest,   &cmd_mpi_setup,
                                          &cmd_timeline,      &cmd_checkpoint, &cmd_weights,
                                          &cmd_verify_resume, &cmd_launch,     &cmd_scale,
                                          &cmd_plan};
enum { NCOMMANDS = sizeof commands / sizeof *commands };

static void usage(void)
{
    say(stdout, "Usage: catena COMMAND [options]\n\n"
                "Catena trains neural networks on CPUs.\n\n"
                "Commands:\n");
    for (int i = 0; i < NCOMMANDS; i++)
        say(stdout, "  %-13s %s\n", commands[i]->name, commands[i]->summary);
    say(stdout,
        "\nOptions:\n  --version     print the version\n  --help        this text\n\n"
        "catena COMMAND --help describes a command; catena help --man COMMAND prints its man "
        "page;\ncatena help --completion " COMPLETION_SHELLS " prints a completion script.\n");
}

const command *command_find(const char *name)
{
    for (int i = 0; i < NCOMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static int unknown(const char *word)
{
    const char *names[NCOMMANDS + 3] = {NULL};
    for (int i = 0; i < NCOMMANDS; i++) names[i] = commands[i]->name;
    names[NCOMMANDS] = "--help";
    names[NCOMMANDS + 1] = "--version";
    const char *near = nearest(word, names);
    say(stderr, "catena: unknown %s '%s'", word[0] == '-' ? "option" : "command", word);
    if (near) say(stderr, "; did you mean %s?", near);
    say(stderr, " (catena --help lists them)\n");
    return EXIT_USAGE;
}

static int run_command(const command *cmd, int argc, char **argv)
{
    launch job;
    args a = {0};
    if (memory_begin() < 0) return report_error(cmd->name);
    int code = launch_begin(&job, cmd);
    if (code < 0) code = launch_args(&job, &a, cmd, argc, argv);
    if (code < 0) code = cmd->run(&a);
    args_free(&a);
    return launch_end(&job, code);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        say(stderr, "catena: no command given (catena --help lists them)\n");
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    bool version = strcmp(word, "--version") == 0;
    bool help = strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
    bool man = help && argc > 2 && strcmp(argv[2], "--man") == 0;
    bool completion = help && argc > 2 && strcmp(argv[2], "--completion") == 0;
    int most = version ? 2 : help ? 3 + (man || completion) : argc;
    if (argc > most) {
        say(stderr, "catena: unexpected argument '%s' after %s\n", argv[most], argv[most - 1]);
        return EXIT_USAGE;
    }
    if (version) {
        say(stdout, "catena %s\n", ctn_version_text());
        return EXIT_DONE;
    }
    if (help && argc == 2) {
        usage();
        return EXIT_DONE;
    }
    if (completion) return print_completion(argv[3], commands, NCOMMANDS);
    if (man && argc == 3) {
        overview_man(commands, NCOMMANDS);
        return EXIT_DONE;
    }
    const char *name = man ? argv[3] : help ? argv[2] : word;
    const command *cmd = command_find(name);
    if (!cmd) return unknown(name);
    if (help) {
        if (man) command_man(cmd);
        else command_help(cmd, false);
        return EXIT_DONE;
    }
    return run_command(cmd, argc - 2, argv + 2);
}

const char *command_line = "catena";

/* The words of the command line with blanks between them, for the report. Lives as long as the
 * process; without memory the report names the command only. */
static void keep_command_line(int argc, char **argv)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return;
    fputs("catena", f);
    for (int i = 1; i < argc; i++) fprintf(f, " %s", argv[i]);
    if (fclose(f) != 0) return;
    command_line = text;
}

int main(int argc, char **argv)
{
    keep_command_line(argc, argv);
    ctn_set_log(report_warning, NULL);
    ctn_set_notice(report_notice, NULL);
    int code = dispatch(argc, argv);
    /* Buffered output may fail as late as here, and a full disk must not look like success. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_DONE) {
        say(stderr, "catena: could not write to standard output\n");
        code = EXIT_ENVIRONMENT;
    }
    return code;
}
