/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 20000
#define SIZE_MAX_GROWN 65536

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static GPtrArray *load_corpus(const char *folder)
{
    GPtrArray *corpus = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;

    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir)) != NULL)
        g_ptr_array_add(names, g_build_filename(folder, name, NULL));
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++) {
        char *text = NULL;
        gsize len = 0;

        g_assert_true(g_file_get_contents(names->pdata[i], &text, &len, NULL));
        g_ptr_array_add(corpus, g_bytes_new_take(text, len));
    }
    g_assert_cmpuint(corpus->len, >, 0);
    return corpus;
}

/* In memory of exactly that size, so that a sanitizer sees every step beyond it. */
static void feed(const uint8_t *data, gsize size)
{
    uint8_t *copy = malloc(size);

    if (size > 0)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void mutate(GRand *rand, GByteArray *buf, GPtrArray *corpus)
{
    static const uint8_t interesting[] = {
        0, 1, 0x7f, 0x80, 0xff, '"', '\\', '{', '[', ' ', '\n', '-', '9'};
    guint at = buf->len > 0 ? (guint)g_rand_int_range(rand, 0, (gint32)buf->len) : 0;
    guint left = buf->len - at;

    if (buf->len == 0 || g_rand_int_range(rand, 0, 8) == 0) { /* insert a piece of another one */
        GBytes *other = corpus->pdata[g_rand_int_range(rand, 0, (gint32)corpus->len)];
        gsize size = 0;
        const uint8_t *data = g_bytes_get_data(other, &size);
        gsize from = size > 0 ? (gsize)g_rand_int_range(rand, 0, (gint32)size) : 0;
        gsize n = size > from ? (gsize)g_rand_int_range(rand, 0, (gint32)(size - from)) + 1 : 0;

        if (buf->len + n <= SIZE_MAX_GROWN && n > 0) {
            g_autofree uint8_t *tail = g_memdup2(buf->data + at, left);

            g_byte_array_set_size(buf, at);
            g_byte_array_append(buf, data + from, (guint)n);
            if (left > 0)
                g_byte_array_append(buf, tail, left);
        }
        return;
    }
    switch (g_rand_int_range(rand, 0, 5)) {
    case 0:
        buf->data[at] ^= (uint8_t)(1u << g_rand_int_range(rand, 0, 8));
        break;
    case 1:
        buf->data[at] = interesting[g_rand_int_range(rand, 0, G_N_ELEMENTS(interesting))];
        break;
    case 2:
        buf->data[at] = (uint8_t)g_rand_int_range(rand, 0, 256);
        break;
    case 3:
        g_byte_array_set_size(buf, at);
        break;
    default:
        g_byte_array_remove_range(buf, at, (guint)g_rand_int_range(rand, 0, (gint32)left) + 1);
        break;
    }
}

static guint from_environment(const char *name, guint otherwise)
{
    const char *text = g_getenv(name);

    return text != NULL ? (guint)g_ascii_strtoull(text, NULL, 10) : otherwise;
}

static void fuzz(gconstpointer folder)
{
    g_autoptr(GPtrArray) corpus = load_corpus(folder);
    guint seed = from_environment("SV_FUZZ_SEED", 1);
    guint rounds = from_environment("SV_FUZZ_ROUNDS", ROUNDS);
    GRand *rand = g_rand_new_with_seed(seed);

    for (guint i = 0; i < corpus->len; i++) {
        gsize size = 0;
        const uint8_t *data = g_bytes_get_data(corpus->pdata[i], &size);

        for (gsize part = 0; part <= MIN(size, 4096); part++)
            feed(data, part);
        feed(data, size);
    }
    for (guint i = 0; i < rounds; i++) {
        GBytes *bytes = corpus->pdata[g_rand_int_range(rand, 0, (gint32)corpus->len)];
        g_autoptr(GByteArray) buf = g_byte_array_new();
        int steps = g_rand_int_range(rand, 1, 8);

        g_byte_array_append(buf, g_bytes_get_data(bytes, NULL), (guint)g_bytes_get_size(bytes));
        while (steps-- > 0)
            mutate(rand, buf, corpus);
        feed(buf->data, buf->len);
    }
    g_rand_free(rand);
    g_test_message("seed %u, %u rounds", seed, rounds);
}

/* argv[1]: the folder of the corpus. */
int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(argc, ==, 2);
    g_test_add_data_func("/fuzz", argv[1], fuzz);
    return g_test_run();
}
