/* SPDX-License-Identifier: Apache-2.0
 *
 * Random trainings: several features of the table, and what the pairs leave out: ranks with samples
 * of their own or without any, nodes of different sizes, groups of ranks, steps that are not
 * finite, calls that fail. See pairs.h.
 */
#include "pairs.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static uint32_t draw(uint32_t *seed, uint32_t n)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return (*seed >> 3) % n;
}

/* The part of the ranks in the samples. Some have none, but not all. */
static void draw_parts(setup *s, uint32_t *seed)
{
    s->apart = true;
    for (int r = 0; r < s->ranks; r++)
        s->part[r] = draw(seed, 4) == 0 ? 0 : 1 + (int)draw(seed, MOST_SAMPLES / WORLD_GROUP - 1);
    if (s->part[0] == 0) s->part[s->ranks - 1]++;
}

/* One step with a loss that is not finite, or a sample. Rewinding would meet the sample again and
 * again, and goes back to where a run was stopped, if that was before. Steps of a second optimizer
 * are not skipped (ctn_trainer_add_optim). */
static void draw_bad(setup *s, uint32_t *seed)
{
    const bool sample = s->nonfinite != 2 && !(s->nonfinite && s->two);
    s->bad = 1 + (int)draw(seed, (sample ? BAD_KINDS : BAD_SAMPLE) - 1);
    s->bad_rank = (int)draw(seed, (uint32_t)s->ranks);
    s->bad_at = s->nonfinite == 2 ? BAD : 1 + (int)draw(seed, 10);
}

/* How the ranks of a training differ from those of the pairs. */
static void draw_ranks(setup *s, uint32_t *seed)
{
    static const char *const names[] = {"ring",  "flat", "rabenseifner", "hierarchical",
                                        "torus", "rsap", "doubling"};
    if (draw(seed, 3) == 0) draw_parts(s, seed);
    if (draw(seed, 2)) s->world = draw(seed, 1u << 20) | 1;
    s->algorithm = names[draw(seed, 7)];
    const test_world w =
        s->world ? test_world_random(s->ranks, s->world) : test_world_plain(s->ranks);
    if ((s->wire && (strcmp(s->algorithm, "flat") == 0 || strcmp(s->algorithm, "doubling") == 0)) ||
        (strcmp(s->algorithm, "hierarchical") == 0 && test_world_scattered(&w)))
        s->algorithm = NULL;
    s->shard_second = s->two && draw(seed, 3) == 0;
}

static void add(char *text, size_t room, const char *format, ...)
{
    const size_t n = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, room - n, format, args);
    va_end(args);
}

static void describe(const setup *s, char *text, size_t room)
{
    char where[100];
    const test_world w =
        s->world ? test_world_random(s->ranks, s->world) : test_world_plain(s->ranks);
    test_world_text(&w, where, sizeof where);
    add(text, room, "%s, %s, ", where, s->algorithm ? s->algorithm : "ring");
    if (s->apart) add(text, room, "samples of each rank:");
    for (int r = 0; s->apart && r < s->ranks; r++) add(text, room, " %d", s->part[r]);
    if (!s->apart) add(text, room, "%d samples", s->samples);
    add(text, room, ", stop after %d", s->stop);
    if (s->two)
        add(text, room, ", second optimizer %d%s", s->second,
            s->shard_second ? " sharded otherwise" : "");
    if (s->bad) add(text, room, ", bad %d of rank %d at %d", s->bad, s->bad_rank, s->bad_at);
    if (s->fails)
        add(text, room, ", failure %d of rank %d at %d", s->fails, s->fail_rank, s->fail_at);
}

setup random_setup(uint32_t seed, char *text, size_t room)
{
    setup s = {0};
    char taken[128] = "";
    const uint32_t n = 2 + draw(&seed, 7);
    for (uint32_t i = 0; i < n; i++) {
        const feature *f = &features[draw(&seed, (uint32_t)nfeatures)];
        if (f->kind && strchr(taken, f->kind)) continue;
        if (f->kind) strncat(taken, &f->kind, 1);
        apply(&s, f);
        add(text, room, "%s, ", f->name);
    }
    s.ranks = s.ranks > 1 ? 2 + (int)draw(&seed, 3) : 1 + (int)draw(&seed, 4);
    s.samples = 20 + (int)draw(&seed, MOST_SAMPLES - 19);
    /* To rewind goes back to where a run was stopped, if that was before. */
    s.stop = s.nonfinite == 2 ? STOP : 2 + (int)draw(&seed, 8);
    if (draw(&seed, 8) == 0) s.samples = 1 + (int)draw(&seed, 12); /* too few for all ranks */
    if (s.two) s.second = (int)draw(&seed, OPTIMS);
    if (s.ranks > 1) draw_ranks(&s, &seed);
    /* What is not finite has no exact sum. */
    if (draw(&seed, s.nonfinite ? 2 : 8) == 0 && (s.nonfinite || !s.exact)) draw_bad(&s, &seed);
    if (draw(&seed, 5) == 0) {
        s.fails = (failure)(1 + draw(&seed, FAILURES - 1));
        s.fail_rank = (int)draw(&seed, (uint32_t)s.ranks);
        s.fail_at = 1 + (int)draw(&seed, 6);
    }
    describe(&s, text, room);
    return s;
}
