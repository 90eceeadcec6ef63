/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/ps-table.h"
#include "cli/options.h"
#include <string.h>

typedef char *(*Cell)(const Sandvirt__V1__PsRow *row); /* (transfer full) */

static char *clock_text(gint64 seconds)
{
    return g_strdup_printf("%02d:%02d:%02d", (int)MIN(seconds / 3600, 9999),
        (int)(seconds / 60 % 60), (int)(seconds % 60));
}

static char *cell_pid(const Sandvirt__V1__PsRow *row)
{
    return g_strdup_printf("%u", row->pid);
}

static char *cell_ppid(const Sandvirt__V1__PsRow *row)
{
    return g_strdup_printf("%u", row->ppid);
}

static char *cell_uid(const Sandvirt__V1__PsRow *row)
{
    return g_strdup_printf("%u", row->uid);
}

static char *cell_user(const Sandvirt__V1__PsRow *row)
{
    return *row->user ? sv_printable(row->user, 32) : cell_uid(row);
}

/* Of the processor's time; not counted. */
static char *cell_share(const Sandvirt__V1__PsRow *row)
{
    return g_strdup("0");
}

static char *cell_stime(const Sandvirt__V1__PsRow *row)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_local(row->start_time);
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    gboolean recent = time && g_date_time_difference(now, time) < G_TIME_SPAN_DAY;
    char *text = time ? g_date_time_format(time, recent ? "%H:%M" : "%b%d") : NULL;

    return text ? text : g_strdup("?");
}

static char *cell_etime(const Sandvirt__V1__PsRow *row)
{
    return clock_text(MAX(g_get_real_time() / G_USEC_PER_SEC - row->start_time, 0));
}

static char *cell_time(const Sandvirt__V1__PsRow *row)
{
    return clock_text((gint64)(row->cpu_ms / 1000));
}

static char *cell_tty(const Sandvirt__V1__PsRow *row)
{
    return *row->tty ? sv_printable(row->tty, 16) : g_strdup("?");
}

static char *cell_state(const Sandvirt__V1__PsRow *row)
{
    return sv_printable(row->state, 8);
}

static char *cell_comm(const Sandvirt__V1__PsRow *row)
{
    return sv_printable(row->comm, 64);
}

static char *cell_args(const Sandvirt__V1__PsRow *row)
{
    return sv_printable(*row->args ? row->args : row->comm, 4096);
}

typedef struct {
    const char *name, *title;
    Cell cell;
    gboolean right; /* numbers */
} Column;

static const Column columns[] = {
    {"pid", "PID", cell_pid, TRUE},
    {"ppid", "PPID", cell_ppid, TRUE},
    {"uid", "UID", cell_uid, TRUE},
    {"user", "USER", cell_user, FALSE},
    {"uname", "USER", cell_user, FALSE},
    {"ruser", "RUSER", cell_user, FALSE},
    {"stime", "STIME", cell_stime, TRUE},
    {"start", "START", cell_stime, TRUE},
    {"etime", "ELAPSED", cell_etime, TRUE},
    {"time", "TIME", cell_time, TRUE},
    {"cputime", "TIME", cell_time, TRUE},
    {"tty", "TT", cell_tty, FALSE},
    {"tt", "TT", cell_tty, FALSE},
    {"tname", "TTY", cell_tty, FALSE},
    {"s", "S", cell_state, FALSE},
    {"stat", "STAT", cell_state, FALSE},
    {"state", "S", cell_state, FALSE},
    {"comm", "COMMAND", cell_comm, FALSE},
    {"ucmd", "CMD", cell_comm, FALSE},
    {"args", "COMMAND", cell_args, FALSE},
    {"cmd", "CMD", cell_args, FALSE},
    {"command", "COMMAND", cell_args, FALSE},
};

/* ps -ef */
static const Column full_columns[] = {
    {"", "UID", cell_user, FALSE},
    {"", "PID", cell_pid, TRUE},
    {"", "PPID", cell_ppid, TRUE},
    {"", "C", cell_share, TRUE},
    {"", "STIME", cell_stime, TRUE},
    {"", "TTY", cell_tty, FALSE},
    {"", "TIME", cell_time, TRUE},
    {"", "CMD", cell_args, FALSE},
};

static void column_free(gpointer data)
{
    g_free((char *)((Column *)data)->title);
    g_free(data);
}

static void add_column(GPtrArray *into, const Column *column, const char *title)
{
    Column *copy = g_memdup2(column, sizeof(*column));

    copy->title = g_strdup(title ? title : column->title);
    g_ptr_array_add(into, copy);
}

/* "pid,ppid,args=COMMAND" */
static gboolean add_columns(GPtrArray *into, const char *list, GError **error)
{
    g_auto(GStrv) names = g_strsplit_set(list, ", ", -1);

    for (char **name = names; *name; name++) {
        char *title = strchr(*name, '=');
        gboolean found = FALSE;

        if (title)
            *title++ = '\0';
        for (gsize i = 0; i < G_N_ELEMENTS(columns) && !found; i++) {
            found = g_str_equal(*name, columns[i].name);
            if (found)
                add_column(into, &columns[i], title);
        }
        if (!found && **name) {
            g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "ps: unknown column \"%s\"", *name);
            return FALSE;
        }
    }
    return TRUE;
}

/* Letters that choose processes or width: all of the container's are printed, and all of a line. */
static gboolean parse_args(GPtrArray *into, char **args, GError **error)
{
    for (; *args; args++) {
        const char *letters = **args == '-' ? *args + 1 : *args;
        gsize n = strspn(letters, "aAefgHjluwx");

        if (letters[n] == 'o') {
            const char *list = letters[n + 1] ? letters + n + 1 : *++args;

            if (!list) {
                g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "ps: -o needs columns");
                return FALSE;
            }
            if (!add_columns(into, list, error))
                return FALSE;
        } else if (letters[n] != '\0' || n == 0) {
            g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID,
                "ps: argument \"%s\" is not supported (-ef, aux, -o COLUMN,...)", *args);
            return FALSE;
        }
    }
    if (into->len > 0)
        return TRUE;
    for (gsize i = 0; i < G_N_ELEMENTS(full_columns); i++)
        add_column(into, &full_columns[i], NULL);
    return TRUE;
}

static void append_line(GString *text, const GPtrArray *chosen, char **cells, const gsize *width)
{
    for (guint c = 0; c < chosen->len; c++) {
        const Column *column = chosen->pdata[c];
        gboolean last = c + 1 == chosen->len;

        if (column->right)
            g_string_append_printf(text, "%*s", (int)width[c], cells[c]);
        else
            g_string_append_printf(text, "%-*s", last ? 0 : (int)width[c], cells[c]);
        g_string_append_c(text, last ? '\n' : ' ');
    }
}

char *sv_ps_table(const Sandvirt__V1__PsResponse *response, char **args, GError **error)
{
    g_autoptr(GPtrArray) chosen = g_ptr_array_new_with_free_func(column_free);
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    g_autofree gsize *width = NULL;
    GString *text;

    if (!parse_args(chosen, args, error))
        return NULL;
    width = g_new0(gsize, chosen->len);
    for (size_t i = 0; i <= response->n_rows; i++) {
        char **cells = g_new0(char *, chosen->len + 1);

        for (guint c = 0; c < chosen->len; c++) {
            const Column *column = chosen->pdata[c];

            cells[c] = i == 0 ? g_strdup(column->title) : column->cell(response->rows[i - 1]);
            width[c] = MAX(width[c], strlen(cells[c]));
        }
        g_ptr_array_add(lines, cells);
    }
    text = g_string_new(NULL);
    for (guint i = 0; i < lines->len; i++)
        append_line(text, chosen, lines->pdata[i], width);
    return g_string_free(text, FALSE);
}
