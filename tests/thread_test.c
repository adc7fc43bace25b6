/* Eight threads, each with its own stream on one device: prefill and decode give the bits that one
 * thread alone gets, and every thread its own messages. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "random.h"

enum { THREADS = 8, ROUNDS = 6, HEADS = 2, DIM = 16, TOKENS = 300, CELLS = HEADS * DIM * DIM };

struct worker {
    struct fixture *fixture;
    int number;
    bool failed;
    char message[256];
    float o[ROUNDS][HEADS * TOKENS * DIM];
    float states[ROUNDS][CELLS];
};

static lattn_status work(struct worker *w, lattn_stream *stream, void *base)
{
    enum { ROWS = HEADS * TOKENS * DIM, Q = 0, K = ROWS, V = 2 * ROWS, O = 3 * ROWS };
    enum { SLOPES = 4 * ROWS, STATES = SLOPES + 16, WORK = STATES + CELLS };
    static const float slopes[HEADS] = {0.01f, 0.5f};
    lattn_status status = LATTN_OK;
    float *inputs = calloc(3 * ROWS, sizeof(float));
    struct random random = random_named("thread");
    for (int i = 0; i < 3 * ROWS; i++)
        inputs[i] = (float)random_normal(&random);
    lattn_prefill_params prefill = LATTN_PREFILL_PARAMS_INIT;
    prefill.batch = 1;
    prefill.heads = HEADS;
    prefill.d = DIM;
    prefill.q = (lattn_tensor){.base = base, .offset = 4 * Q};
    prefill.k = (lattn_tensor){.base = base, .offset = 4 * K};
    prefill.v = (lattn_tensor){.base = base, .offset = 4 * V};
    prefill.o = (lattn_tensor){.base = base, .offset = 4 * O};
    prefill.slopes = (lattn_array){base, 4 * SLOPES};
    prefill.state_out = (lattn_state){.base = base, .offset = 4 * STATES};
    lattn_decode_params decode = LATTN_DECODE_PARAMS_INIT;
    decode.batch = 1;
    decode.heads = HEADS;
    decode.d = DIM;
    decode.q = prefill.q;
    decode.k = prefill.k;
    decode.v = prefill.v;
    decode.o = prefill.o;
    decode.slopes = prefill.slopes;
    decode.state_in = prefill.state_out;
    int rounds = test_effort() == TEST_QUICK ? 2 : ROUNDS;
    for (int round = 0; !status && round < rounds; round++) {
        prefill.tokens = TOKENS - 41 * round;
        status = lattn_memory_upload(stream, base, 0, inputs, 3 * ROWS * sizeof(float));
        if (!status)
            status = lattn_memory_upload(stream, base, 4 * SLOPES, slopes, sizeof(slopes));
        if (!status)
            status = lattn_memory_fill(stream, base, 4 * O, 0, 4 * ROWS);
        if (!status)
            status = lattn_prefill_prepare(stream, &prefill);
        if (!status)
            status = lattn_decode_prepare(stream, &decode);
        if (!status)
            status = lattn_prefill_workspace(stream, &prefill, &prefill.workspace.size);
        prefill.workspace.base = prefill.workspace.size ? base : NULL;
        prefill.workspace.offset = 4 * WORK;
        if (!status)
            status = lattn_prefill(stream, &prefill);
        if (!status)
            status = lattn_memory_download(stream, w->o[round], base, 4 * O, sizeof(w->o[round]));
        if (!status)
            status = lattn_decode(stream, &decode);
        if (!status)
            status = lattn_memory_download(stream, w->states[round], base, 4 * STATES,
                                           sizeof(w->states[round]));
        /* A failure whose message must not be another thread's. */
        lattn_prefill_params bad = prefill;
        bad.d = 1000 + w->number;
        char part[32];
        snprintf(part, sizeof(part), "d = %d", 1000 + w->number);
        if (!status &&
            (lattn_prefill(stream, &bad) == LATTN_OK || !strstr(lattn_error_message(), part))) {
            snprintf(w->message, sizeof(w->message), "another's message: %s",
                     lattn_error_message());
            w->failed = true;
        }
    }
    free(inputs);
    return status;
}

static void *run_worker(void *data)
{
    struct worker *w = data;
    lattn_stream *stream = NULL;
    void *base = NULL;
    lattn_status status = lattn_stream_create(w->fixture->device, &stream);
    if (!status)
        status = lattn_memory_alloc(w->fixture->device, 1 << 18, &base);
    if (!status)
        status = work(w, stream, base);
    if (status) {
        w->failed = true;
        snprintf(w->message, sizeof(w->message), "%s: %s", lattn_status_name(status),
                 lattn_error_message());
    }
    lattn_memory_free(w->fixture->device, base);
    lattn_stream_destroy(stream);
    return NULL;
}

static void threads(struct fixture *fixture, const void *data)
{
    (void)data;
    if (strstr(fixture->info.driver, "Oclgrind")) /* an interpreter for one thread */
        skip();
    struct worker *workers = calloc(THREADS + 1, sizeof(*workers));
    pthread_t handles[THREADS];
    for (int i = 0; i <= THREADS; i++) {
        workers[i].fixture = fixture;
        workers[i].number = i;
    }
    run_worker(&workers[THREADS]); /* alone */
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&handles[i], NULL, run_worker, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(handles[i], NULL);
    for (int i = 0; i <= THREADS; i++) {
        if (workers[i].failed)
            fail_msg("thread %d: %s", i, workers[i].message);
        assert_memory_equal(workers[i].o, workers[THREADS].o, sizeof(workers[i].o));
        assert_memory_equal(workers[i].states, workers[THREADS].states, sizeof(workers[i].states));
    }
    free(workers);
}

/* Contexts come and go in several threads at once; drivers are opened once. */
static void *open_and_close(void *data)
{
    lattn_context_params params = LATTN_CONTEXT_PARAMS_INIT;
    params.backends = data;
    for (int i = 0; i < 8; i++) {
        lattn_context *context;
        lattn_device *device;
        int32_t index;
        if (lattn_context_create(&params, &context))
            return (void *)"context";
        if (lattn_device_find(context, params.backends, 0, &index) ||
            lattn_device_open(context, index, &device)) {
            lattn_context_destroy(context);
            return (void *)"device";
        }
        lattn_context_destroy(context);
        lattn_device_close(device);
    }
    return NULL;
}

static void contexts(struct fixture *fixture, const void *data)
{
    (void)data;
    pthread_t handles[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&handles[i], NULL, open_and_close, fixture->info.backend),
                         0);
    for (int i = 0; i < THREADS; i++) {
        void *failure;
        pthread_join(handles[i], &failure);
        assert_null(failure);
    }
}

int main(int argc, char **argv)
{
    static const struct device_test tests[] = {
        {"eight streams of one device", threads, NULL, TEST_QUICK},
        {"eight threads with contexts", contexts, NULL, TEST_QUICK},
    };
    return run_on_devices("threads", tests, 2, argc, argv);
}
