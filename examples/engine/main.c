/* engine [BACKEND]: serves a few requests, and checks every output against the reference device,
 * which computes each request in one piece. Exit status 1 if they differ. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine.h"

enum { REQUESTS = 14, MOST_LENGTH = 700, SNAPSHOT = SLOTS };

struct request {
    int prompt, generate; /* tokens */
    int arrives;          /* at this step */
    int slot;             /* -1: none */
    int done;             /* tokens computed */
};

struct server {
    struct request requests[REQUESTS];
    float *outputs; /* [REQUESTS][LAYERS][MOST_LENGTH][TOKEN_SIZE] */
    long tokens;
};

static float *output_of(struct server *server, int request, int layer, int position)
{
    size_t at = ((size_t)request * LAYERS + (size_t)layer) * MOST_LENGTH + (size_t)position;
    return server->outputs + at * TOKEN_SIZE;
}

static void collect(void *user, int layer, const struct row *rows, int count, const float *o)
{
    struct server *server = user;
    for (int i = 0; i < count; i++) {
        float *to = output_of(server, rows[i].request, layer, rows[i].first);
        size_t size = (size_t)rows[i].count * TOKEN_SIZE;
        for (size_t j = 0; j < size; j++)
            to[j] = o[j];
        o += size;
        server->tokens += layer == 0 ? rows[i].count : 0;
    }
}

static void make_requests(struct server *server)
{
    static const int prompts[] = {5, 300, 64, 1, 257, 120, 33};
    for (int i = 0; i < REQUESTS; i++)
        server->requests[i] = (struct request){
            .prompt = prompts[i % 7] + i,
            .generate = 6 + i,
            .arrives = i / 3,
            .slot = -1,
        };
}

static bool take_slot(struct server *server, struct request *request)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        bool used = false;
        for (int i = 0; i < REQUESTS; i++)
            used = used || server->requests[i].slot == slot;
        if (!used) {
            request->slot = slot;
            return true;
        }
    }
    return false;
}

/* Every request that has a slot gives a row: its whole prompt, or its next token. */
static int schedule(struct server *server, int step, struct row rows[MOST_ROWS])
{
    int count = 0, tokens = 0;
    for (int i = 0; i < REQUESTS; i++) {
        struct request *request = &server->requests[i];
        bool finished = request->done == request->prompt + request->generate;
        int size = request->done ? 1 : request->prompt;
        if (finished || request->arrives > step || tokens + size > MOST_TOKENS)
            continue;
        if (request->slot < 0 && !take_slot(server, request))
            continue;
        rows[count++] = (struct row){i, request->slot, request->done, size};
        tokens += size;
    }
    return count;
}

static void advance(struct server *server, const struct row *rows, int count)
{
    for (int i = 0; i < count; i++) {
        struct request *request = &server->requests[rows[i].request];
        request->done += rows[i].count;
        if (request->done == request->prompt + request->generate)
            request->slot = -1;
    }
}

/* Runs all requests to their ends; every third step of a request that decodes is speculative. */
static void serve(struct engine *engine, struct server *server)
{
    struct row rows[MOST_ROWS];
    for (int step = 0, count; (count = schedule(server, step, rows)) > 0; step++) {
        engine_step(engine, rows, count, collect, server);
        advance(server, rows, count);
        for (int i = 0; i < count; i++) {
            struct request *request = &server->requests[rows[i].request];
            int left = request->prompt + request->generate - request->done;
            if (request->slot < 0 || left <= DRAFT || step % 3)
                continue;
            struct row draft = {rows[i].request, request->slot, request->done, DRAFT};
            int accepted = 1 + rows[i].request % DRAFT;
            engine_speculate(engine, &draft, accepted, collect, server);
            draft.count = accepted;
            advance(server, &draft, 1);
        }
    }
}

/* A prefix is computed once, kept, spoilt by going on, and resumed: the outputs must repeat. */
static void resume_prefix(struct engine *engine, struct server *server)
{
    const struct row prefix = {0, 0, 0, 4}, rest = {0, 0, 4, server->requests[0].prompt - 4};
    engine_step(engine, &prefix, 1, collect, server);
    engine_copy_slot(engine, SNAPSHOT, 0);
    engine_step(engine, &rest, 1, collect, server);
    engine_copy_slot(engine, 0, SNAPSHOT);
    engine_step(engine, &rest, 1, collect, server);
}

/* The relative error of all outputs against the reference, each request computed in one piece. */
static double check(lattn_context *context, struct server *server)
{
    int32_t index;
    must(lattn_device_find(context, "reference", 0, &index));
    struct engine reference;
    engine_open(&reference, context, index);
    struct server *whole = calloc(1, sizeof(*whole));
    if (!whole)
        must(LATTN_ERROR_OUT_OF_MEMORY);
    size_t size = (size_t)REQUESTS * LAYERS * MOST_LENGTH * TOKEN_SIZE;
    whole->outputs = calloc(size, sizeof(float));
    if (!whole->outputs)
        must(LATTN_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < REQUESTS; i++) {
        struct row row = {i, 0, 0, server->requests[i].prompt + server->requests[i].generate};
        engine_step(&reference, &row, 1, collect, whole);
    }
    double difference = 0, norm = 0;
    for (size_t i = 0; i < size; i++) {
        double off = (double)server->outputs[i] - (double)whole->outputs[i];
        difference += off * off;
        norm += (double)whole->outputs[i] * (double)whole->outputs[i];
    }
    engine_close(&reference);
    free(whole->outputs);
    free(whole);
    return sqrt(difference / norm);
}

int main(int argc, char **argv)
{
    lattn_context *context;
    must(lattn_context_create(NULL, &context));
    int32_t index;
    must(lattn_device_find(context, argc > 1 ? argv[1] : "auto", 0, &index));
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    must(lattn_device_info_get(context, index, &info));

    struct server *server = calloc(1, sizeof(*server));
    if (!server)
        must(LATTN_ERROR_OUT_OF_MEMORY);
    server->outputs = calloc((size_t)REQUESTS * LAYERS * MOST_LENGTH * TOKEN_SIZE, sizeof(float));
    if (!server->outputs)
        must(LATTN_ERROR_OUT_OF_MEMORY);
    make_requests(server);

    struct engine engine;
    engine_open(&engine, context, index);
    struct timespec begun, ended;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    serve(&engine, server);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    long tokens = server->tokens;
    resume_prefix(&engine, server);
    engine_close(&engine);

    double seconds =
        (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) * 1e-9;
    double error = check(context, server);
    bool right = error < 2e-6;
    printf("%s (%s): %d requests, %ld tokens through %d layers, %.0f tokens/s\n", info.backend,
           info.name, REQUESTS, tokens, LAYERS, (double)tokens / seconds);
    printf("relative error against the reference %.1e: %s\n", error, right ? "right" : "WRONG");
    free(server->outputs);
    free(server);
    lattn_context_destroy(context);
    return right ? 0 : 1;
}
