/* SPDX-License-Identifier: Apache-2.0
 *
 * Text generation: sequences of tokens, continued by a language model of the zoo. The keys and
 * values of the tokens so far are kept, so each new token costs one pass over the weights.
 */
#ifndef CATENA_GENERATE_H
#define CATENA_GENERATE_H

#include <catena/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ctn_generator ctn_generator;

/* How the next token is chosen. The default is always the most likely one. */
typedef struct {
    size_t struct_size;
    int64_t room; /* tokens of a sequence with its prompt; 0: the model's maximum, up to 4096 */
    double temperature; /* 0: the most likely token; 1: with the model's own probabilities */
    int64_t top_k;      /* choose from the k most likely tokens; 0: from all */
    double top_p;       /* choose from the most likely tokens that have this share; 0: from all */
    uint64_t seed;      /* the same seed gives the same tokens */
    /* The logits of tokens that are in the sequence already, prompt included, are divided by this
     * if they are positive, and multiplied if not; above 1 avoids repetition. 0: 1. */
    double repetition_penalty;
} ctn_generator_opt;

/* Make a generator. The module must be a language model of the zoo (gpt or llama), and must outlive
 * it. Local. Result: *g, owned, ctn_generator_free. Errors: EUNSUPPORTED (another module), EARG,
 * ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_generator_new(ctn_generator **g, ctn_module *m,
                                                    const ctn_generator_opt *opt);
/* Free a generator. Call it between scopes. NULL is allowed. Local. */
CTN_API void ctn_generator_free(ctn_generator *g);

/* Begin n new sequences with prompts of at least one token: prompt[i] has length[i] tokens. Writes
 * the token that follows each of them to next. Call it between scopes. Local. Errors: EARG (a
 * prompt is empty or longer than the room, or has a token that the model does not have), EFORMAT
 * (a token is to be drawn, and the logits are not finite), those of the model. */
CTN_API CTN_MUST_CHECK ctn_status ctn_generator_start(ctn_generator *g, int64_t n,
                                                      const int32_t *const *prompt,
                                                      const int64_t *length, int32_t *next);
/* Append `tokens` to the n sequences, usually what the last call returned, and write the tokens
 * that follow to next, which may be the same array. Call it between scopes. Local. Returns CTN_END
 * if a sequence has no room left. Errors: as ctn_generator_start, ESTATE (no sequence). */
CTN_API CTN_MUST_CHECK ctn_status ctn_generator_next(ctn_generator *g, const int32_t *tokens,
                                                     int32_t *next);
/* The number n of sequences, 0 before the first ctn_generator_start. Local. */
CTN_API int64_t ctn_generator_sequences(const ctn_generator *g);
/* The logits (n,V) from which the last call chose, with the repetition penalty. NULL before the
 * first call. Local. Result: borrowed until the next call. */
CTN_API const float *ctn_generator_logits(const ctn_generator *g);

#ifdef __cplusplus
}
#endif
#endif
