/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the completion scripts for bash, zsh and fish, all from the option tables. A script
 * completes subcommands, options, the operands that a subcommand knows, the values of a choice, and
 * file or folder names where an option or operand is a path. It never starts catena itself.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const command *const *commands;
static int ncommands;

/* `catena help` is handled by main.c, but it is completed like a subcommand. */
static const char *const *command_names(void)
{
    static const char *names[MAX_OPTIONS];
    for (int i = 0; i < ncommands; i++) names[i] = commands[i]->name;
    return names;
}

static const option help_options[] = {
    {"man", NULL, NULL, "print a man page", GROUP_NONE},
    {"completion", COMPLETION_SHELLS, NULL, "print a completion script", GROUP_NONE},
    {NULL, NULL, NULL, NULL, GROUP_NONE},
};
static const command help_command = {
    .name = "help",
    .operands = "COMMAND",
    .summary = "describe a command",
    .words = command_names,
    .options = help_options,
};

/* The i-th subcommand; the last one is `help`, which is followed by NULL. */
static const command *command_at(int i)
{
    return i < ncommands ? commands[i] : i == ncommands ? &help_command : NULL;
}

typedef enum { VALUE_NONE, VALUE_ANY, VALUE_CHOICE, VALUE_FILE, VALUE_FOLDER } value_kind;

static value_kind value_of(const option *o)
{
    const option_type type = option_type_of(o);
    if (type == TYPE_FLAG) return VALUE_NONE;
    if (type == TYPE_CHOICE) return VALUE_CHOICE;
    if (strcmp(o->arg, "DIR") == 0) return VALUE_FOLDER;
    return strcmp(o->arg, "FILE") == 0 || strcmp(o->arg, "PATH") == 0 ? VALUE_FILE : VALUE_ANY;
}

/* Number of operands that may be file names, counted from the first one. */
static int file_operands(const command *cmd)
{
    return cmd->more ? 99 : cmd->paths ? 1 : cmd->free_words;
}

/* The command whose options stand after `--`: "train" for "options of catena train". "": the words
 * there are a command of their own. NULL: nothing stands there. */
static const char *command_after(const command *cmd)
{
    static const char options[] = "options of catena ";
    if (!cmd->after) return NULL;
    return strncmp(cmd->after, options, sizeof options - 1) == 0 ? cmd->after + sizeof options - 1
                                                                 : "";
}

static void print_words(const command *cmd)
{
    if (!cmd->words) return;
    for (const char *const *w = cmd->words(); *w; w++) say(stdout, " %s", *w);
}

/* The values of a choice with blanks between them. */
static void print_choices(const option *o)
{
    for (const char *c = o->arg; *c; c++) putchar(*c == '|' ? ' ' : *c);
}

/* Text inside single quotes, without the remark after a semicolon. `special`: characters that get
 * a backslash. */
static void print_quoted(const char *s, const char *special)
{
    for (const char *end = s + strcspn(s, ";"); s < end; s++) {
        if (*s == '\'') say(stdout, "'\\'");
        else if (strchr(special, *s)) putchar('\\');
        putchar(*s);
    }
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* The rules for one value in the table of _catena: a case of "command --option". */
static void bash_values(const command *cmd)
{
    for (const option *o = cmd->options; o->name; o++) {
        const value_kind kind = value_of(o);
        if (kind != VALUE_CHOICE && kind != VALUE_FILE && kind != VALUE_FOLDER) continue;
        say(stdout, "    '%s --%s') ", cmd->name, o->name);
        if (kind == VALUE_CHOICE) {
            say(stdout, "words='");
            print_choices(o);
            say(stdout, "' ;;\n");
        } else {
            say(stdout, "%s=1 ;;\n", kind == VALUE_FILE ? "files" : "folders");
        }
    }
}

static void bash_command(const command *cmd)
{
    say(stdout, "    %s)\n        words='", cmd->name);
    print_words(cmd);
    say(stdout, "' options='");
    for (const option *o = cmd->options; o->name; o++) say(stdout, " --%s", o->name);
    say(stdout, " --help'\n        valued='%s", cmd->dash_n ? " -n -np" : "");
    for (const option *o = cmd->options; o->name; o++)
        if (o->arg) say(stdout, " --%s", o->name);
    const char *after = command_after(cmd);
    if (after && !after[0]) after = "*";
    say(stdout, " ' files=%d after='%s' ;;\n", file_operands(cmd), after ? after : "");
}

static const char bash_function[] =
    "# Reads the words before the cursor, then completes the last one.\n"
    "_catena()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} command='' option='' operands=0 word\n"
    "    local words='' options='' valued='' files=0 folders=0 after=''\n"
    "    COMPREPLY=()\n"
    "    _catena_command\n"
    "    [ \"$cur\" != = ] || cur='' # bash splits --name=value into three words\n"
    "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
    "        if [ -n \"$option\" ]; then\n"
    "            [ \"$word\" = = ] || option=''\n"
    "        elif [ -z \"$command\" ]; then\n"
    "            command=$word\n"
    "            _catena_command\n"
    "        elif [ \"$word\" = -- ] && [ -n \"$after\" ]; then\n"
    "            command=${after#\\*} operands=0\n"
    "            _catena_command\n"
    "        elif [[ $valued == *\" $word \"* ]]; then\n"
    "            option=$word\n"
    "        elif [[ $word != -* ]]; then\n"
    "            ((++operands))\n"
    "        fi\n"
    "    done\n"
    "    if [ -n \"$option\" ]; then\n"
    "        words='' files=0\n"
    "        _catena_value\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        words=$options files=0\n"
    "    elif ((operands)); then\n"
    "        words='' files=$((files > operands))\n"
    "    fi\n"
    "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
    "    ((files || folders)) || return 0\n"
    "    compopt -o filenames 2> /dev/null\n"
    "    local IFS=$'\\n'\n"
    "    if ((files)); then COMPREPLY+=($(compgen -f -- \"$cur\")); fi\n"
    "    if ((folders)); then COMPREPLY+=($(compgen -d -- \"$cur\")); fi\n"
    "}\n"
    "complete -F _catena catena\n";

static void print_bash(void)
{
    const command *cmd;
    say(stdout, "# shellcheck shell=bash disable=SC2034,SC2154,SC2207\n"
                "# What a command expects: its operands, all options, and those with a value.\n"
                "_catena_command()\n{\n    words='' options='' valued='' files=0 after=''\n"
                "    case $command in\n    '')\n        words='");
    for (int i = 0; (cmd = command_at(i)); i++) say(stdout, " %s", cmd->name);
    say(stdout, "' options='--help --version' ;;\n");
    for (int i = 0; (cmd = command_at(i)); i++) bash_command(cmd);
    say(stdout, "    esac\n}\n\n# What an option expects.\n_catena_value()\n{\n"
                "    case \"$command $option\" in\n");
    for (int i = 0; (cmd = command_at(i)); i++) bash_values(cmd);
    say_lines(stdout, "    esac\n}\n\n%s", bash_function);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

static void zsh_option(const option *o)
{
    const value_kind kind = value_of(o);
    say(stdout, "            '--%s%s[", o->name, kind == VALUE_NONE ? "" : "=");
    print_quoted(o->help, "[]\\");
    say(stdout, "]");
    if (kind != VALUE_NONE) say(stdout, ":%s:", kind == VALUE_CHOICE ? "value" : o->arg);
    if (kind == VALUE_CHOICE) {
        say(stdout, "(");
        print_choices(o);
        say(stdout, ")");
    }
    if (kind == VALUE_FILE) say(stdout, "_files");
    if (kind == VALUE_FOLDER) say(stdout, "_files -/");
    say(stdout, "' \\\n");
}

static void zsh_command(const command *cmd)
{
    const char *after = command_after(cmd);
    const int files = file_operands(cmd);
    say(stdout, "    %s)\n        _arguments -S \\\n", cmd->name);
    for (const option *o = cmd->options; o->name; o++) zsh_option(o);
    if (cmd->words) {
        say(stdout, "            '1: :_alternative \"words:word:(");
        print_words(cmd);
        say(stdout, ")\"%s' \\\n", cmd->paths ? " \"files:file:_files\"" : "");
    }
    if (files > 0 && !cmd->paths) say(stdout, "            '*:file:_files' \\\n");
    for (int i = 0; cmd->dash_n && i < 2; i++)
        say(stdout, "            '-n%s[the same as --%s]:N:' \\\n", i ? "p" : "", cmd->dash_n);
    /* A blank before the function keeps _arguments from adding words of its own. */
    if (after) say(stdout, "            '*:: : _catena_after %s' \\\n", after);
    say(stdout, "            '--help[describe the command]' ;;\n");
}

static const char zsh_functions[] =
    "# After `--`: another command, or options of the given one. _arguments keeps the operands\n"
    "# before `--`.\n"
    "_catena_after()\n"
    "{\n"
    "    local at=$words[(i)--]\n"
    "    if ((at < CURRENT)); then\n"
    "        shift $at words\n"
    "        ((CURRENT -= at))\n"
    "    fi\n"
    "    if [[ -n $1 ]]; then\n"
    "        words=($1 $words)\n"
    "        ((CURRENT++))\n"
    "    fi\n"
    "    if ((CURRENT == 1)); then _catena_names; else _catena_options; fi\n"
    "}\n"
    "\n"
    "_catena()\n"
    "{\n"
    "    _arguments '(- *)--help[list the commands]' '(- *)--version[print the version]' \\\n"
    "        '1: :_catena_names' '*:: :_catena_options'\n"
    "}\n"
    "\n"
    "# Autoloaded, this file is the body of _catena; sourced, it only defines it.\n"
    "if [[ $funcstack[1] == _catena ]]; then\n"
    "    _catena \"$@\"\n"
    "else\n"
    "    compdef _catena catena\n"
    "fi\n";

static void print_zsh(void)
{
    const command *cmd;
    say(stdout, "#compdef catena\n\n_catena_names()\n{\n    local -a names=(\n");
    for (int i = 0; (cmd = command_at(i)); i++) {
        say(stdout, "        '%s:", cmd->name);
        print_quoted(cmd->summary, "\\:");
        say(stdout, "'\n");
    }
    say(stdout, "    )\n    _describe command names\n}\n\n"
                "# words[1] is the command.\n"
                "_catena_options()\n{\n    case $words[1] in\n");
    for (int i = 0; (cmd = command_at(i)); i++) zsh_command(cmd);
    say_lines(stdout, "    esac\n}\n\n%s", zsh_functions);
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void fish_option(const command *cmd, const option *o)
{
    say(stdout, "complete -c catena -n '__catena_is %s' -l %s", cmd->name, o->name);
    switch (value_of(o)) {
    case VALUE_NONE: break;
    case VALUE_ANY: say(stdout, " -x"); break;
    case VALUE_FILE: say(stdout, " -r -F"); break;
    case VALUE_FOLDER: say(stdout, " -x -a '(__fish_complete_directories)'"); break;
    case VALUE_CHOICE:
        say(stdout, " -x -a '");
        print_choices(o);
        say(stdout, "'");
        break;
    }
    say(stdout, " -d '");
    print_quoted(o->help, "\\");
    say(stdout, "'\n");
}

static void fish_command(const command *cmd)
{
    say(stdout, "\ncomplete -c catena -n __catena_first -a %s -d '", cmd->name);
    print_quoted(cmd->summary, "\\");
    say(stdout, "'\n");
    if (cmd->words) {
        say(stdout, "complete -c catena -n '__catena_is %s' -a '", cmd->name);
        print_words(cmd);
        say(stdout, "'\n");
    }
    if (file_operands(cmd) > 0)
        say(stdout, "complete -c catena -n '__catena_is %s' -F\n", cmd->name);
    for (const option *o = cmd->options; o->name; o++) fish_option(cmd, o);
    for (int i = 0; cmd->dash_n && i < 2; i++)
        say(stdout, "complete -c catena -n '__catena_is %s' -%s -x -d 'the same as --%s'\n",
            cmd->name, i ? "o np" : "s n", cmd->dash_n);
    const char *after = command_after(cmd);
    if (after)
        say(stdout, "complete -c catena -n '__catena_after %s' -a '(__catena_rest %s)'\n",
            cmd->name, after);
}

static void print_fish(void)
{
    const command *cmd;
    say(stdout,
        "# The words before the cursor: __catena_first: none; __catena_is NAME: this command;\n"
        "# __catena_after NAME: this command and `--`. __catena_rest [NAME] completes the words\n"
        "# after `--` as a command, or as options of NAME.\n"
        "function __catena_first\n"
        "    test (count (commandline -opc)) -eq 1\n"
        "end\n"
        "function __catena_is\n"
        "    set -l typed (commandline -opc)\n"
        "    test \"$typed[2]\" = $argv[1]; and not contains -- -- $typed\n"
        "end\n"
        "function __catena_after\n"
        "    set -l typed (commandline -opc)\n"
        "    test \"$typed[2]\" = $argv[1]; and contains -- -- $typed\n"
        "end\n"
        "function __catena_rest\n"
        "    set -l typed (commandline -opc)\n"
        "    set -l rest $typed[(math (contains -i -- -- $typed) + 1)..]\n"
        "    complete -C (string join ' ' -- catena $argv $rest (commandline -ct))\n"
        "end\n"
        "complete -c catena -f\n"
        "complete -c catena -n __catena_first -l help -d 'list the commands'\n"
        "complete -c catena -n __catena_first -l version -d 'print the version'\n"
        "complete -c catena -n 'not __catena_first' -l help -d 'describe the command'\n");
    for (int i = 0; (cmd = command_at(i)); i++) fish_command(cmd);
}

int print_completion(const char *shell, const command *const *all, int n)
{
    static const option shells = {"completion", COMPLETION_SHELLS, NULL, NULL, GROUP_NONE};
    char why[64];
    commands = all;
    ncommands = n;
    if (!shell || !option_accepts(&shells, shell, why, sizeof why)) {
        say(stderr, "catena help: --completion needs the name of a shell (%s)\n",
            COMPLETION_SHELLS);
        return EXIT_USAGE;
    }
    if (strcmp(shell, "zsh") != 0)
        say(stdout,
            "# Completion of the command catena, printed by `catena help --completion %s`.\n",
            shell);
    if (strcmp(shell, "bash") == 0) print_bash();
    else if (strcmp(shell, "zsh") == 0) print_zsh();
    else print_fish();
    return EXIT_DONE;
}
