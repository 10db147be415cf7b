/* SPDX-License-Identifier: Apache-2.0
 *
 * catena checkpoint verify: compares all files of the states with the sizes and hashes that were
 * saved, and lists every damage.
 */
#include "checkpoint/checkpoint.h"

typedef struct {
    json *j; /* NULL: text */
    int64_t states, damaged;
} view;

static ctn_status show_damage(void *user, const char *text)
{
    const view *v = user;
    if (v->j) json_text(v->j, NULL, text);
    else say(stdout, "  %s\n", text);
    return CTN_OK;
}

static ctn_status verify_state(view *v, const char *path)
{
    if (v->j) {
        json_open(v->j, NULL, '{');
        json_text(v->j, "path", path);
        json_open(v->j, "damage", '[');
    } else {
        say(stdout, "%s\n", path);
    }
    ctn_status st = ctn_state_verify(path, show_damage, v);
    const bool damaged = st == CTN_EFORMAT;
    if (damaged) {
        ctn_error_clear();
        st = CTN_OK;
    }
    if (v->j) {
        json_close(v->j, ']');
        json_bool(v->j, "intact", !damaged);
        json_close(v->j, '}');
    } else if (st == CTN_OK && !damaged) {
        say(stdout, "  intact\n");
    }
    v->states++;
    v->damaged += damaged;
    return st;
}

static ctn_status verify_one(void *user, const ctn_state_info *s)
{
    return verify_state(user, s->path);
}

ctn_status verify_place(const place *p, json *j, int64_t *damaged)
{
    view v = {.j = j};
    const ctn_status st =
        p->one ? verify_state(&v, p->path) : ctn_states_visit(p->path, verify_one, &v);
    *damaged += v.damaged;
    if (st == CTN_OK && v.states == 0)
        return ctn_fail(CTN_ENOTFOUND, "%s has no saved state", p->path);
    return st;
}
