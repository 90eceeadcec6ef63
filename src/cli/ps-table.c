/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/ps-table.h"
#include "base/error.h"
#include "cli/options.h"
#include "cli/ps-columns.h"
#include <string.h>

/* What was asked for: with a dash and without one a letter may mean two things, as for ps. */
typedef struct {
    GPtrArray *columns; /* of Chosen */
    gboolean full, extra_full, jobs, long_form; /* -f, -F, -j, -l */
    gboolean bsd, bsd_user, bsd_jobs, bsd_long; /* x, u, j, l */
    gboolean no_header;
} Wanted;

typedef struct {
    const SvPsColumn *column;
    char *title;
} Chosen;

static void chosen_free(gpointer data)
{
    Chosen *chosen = data;

    g_free(chosen->title);
    g_free(chosen);
}

/* "pid,ppid:6,args=COMMAND" */
static gboolean add_columns(Wanted *wanted, const char *list, GError **error)
{
    g_auto(GStrv) names = g_strsplit_set(list, ", ", -1);

    for (char **name = names; *name; name++) {
        char *title = strchr(*name, '=');
        char *width = strchr(*name, ':');
        Chosen *chosen = NULL;
        const SvPsColumn *column;

        if (title)
            *title++ = '\0';
        if (width)
            *width = '\0';
        if (!**name)
            continue;
        column = sv_ps_column(*name);
        if (!column) {
            g_autofree char *shown = sv_printable(*name, 64);

            g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "ps: unknown column \"%s\"", shown);
            return FALSE;
        }
        chosen = g_new0(Chosen, 1);
        chosen->column = column;
        chosen->title = g_strdup(title ? title : column->title);
        g_ptr_array_add(wanted->columns, chosen);
    }
    return TRUE;
}

/* All of a container's processes are printed anyway, and all of a line: letters that choose those are taken. */
static gboolean take_letter(Wanted *wanted, char letter, gboolean dash)
{
#define LETTER(letter, dash, field)                                                                \
    {                                                                                              \
        letter, dash, G_STRUCT_OFFSET(Wanted, field)                                               \
    }
    static const struct {
        char letter;
        gboolean dash;
        gsize offset;
    } formats[] = {LETTER('f', TRUE, full), LETTER('F', TRUE, extra_full), LETTER('j', TRUE, jobs),
        LETTER('l', TRUE, long_form), LETTER('u', FALSE, bsd_user), LETTER('j', FALSE, bsd_jobs),
        LETTER('l', FALSE, bsd_long), LETTER('h', FALSE, no_header)};
#undef LETTER

    wanted->bsd |= !dash;
    for (gsize i = 0; i < G_N_ELEMENTS(formats); i++) {
        if (formats[i].letter != letter || formats[i].dash != dash)
            continue;
        G_STRUCT_MEMBER(gboolean, wanted, formats[i].offset) = TRUE;
        return TRUE;
    }
    return strchr(dash ? "AadeHwy" : "aefgwx", letter) != NULL;
}

static gboolean parse_args(Wanted *wanted, char **args, GError **error)
{
    for (; *args; args++) {
        gboolean dash = **args == '-';
        const char *letters = dash ? *args + 1 : *args;

        if (g_str_equal(*args, "--no-headers") || g_str_equal(*args, "--no-heading")) {
            wanted->no_header = TRUE;
            continue;
        }
        /* -aux: ps takes it so as well */
        if (dash && strchr(letters, 'u') && strspn(letters, "auxw") == strlen(letters))
            dash = FALSE;
        for (; *letters && *letters != 'o'; letters++)
            if (!take_letter(wanted, *letters, dash))
                break;
        if (*letters == 'o') {
            const char *list = letters[1] ? letters + 1 : *++args;

            if (!list) {
                g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "ps: -o needs columns");
                return FALSE;
            }
            if (!add_columns(wanted, list, error))
                return FALSE;
        } else if (*letters || letters == *args || g_str_equal(*args, "-")) {
            g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID,
                "ps: argument \"%s\" is not supported (-e, -f, -F, -j, -l, aux, ax, j, l, -o "
                "COLUMN,...)",
                *args);
            return FALSE;
        }
    }
    return TRUE;
}

static const char *format_of(const Wanted *wanted)
{
    if (wanted->bsd_user)
        return "user,pid,%cpu,%mem,vsz,rss,tname,stat,bsdstart,bsdtime,args";
    if (wanted->bsd_jobs)
        return "ppid,pid,pgid,sid,tname,tpgid,stat,uid,bsdtime,args";
    if (wanted->bsd_long)
        return "f,uid,pid,ppid,priority,ni,vsz,rss,wchan,stat,tname,bsdtime,args";
    if (wanted->extra_full)
        return "user=UID,pid,ppid,c,sz,rss,psr,stime,tname,time,cmd";
    if (wanted->full && wanted->long_form)
        return "f,s,user=UID,pid,ppid,c,opri,ni,addr,sz,wchan,stime,tname,time,cmd";
    if (wanted->full && wanted->jobs)
        return "user=UID,pid,ppid,pgid,sid,c,stime,tname,time,cmd";
    if (wanted->full)
        return "user=UID,pid,ppid,c,stime,tname,time,cmd";
    if (wanted->long_form)
        return "f,s,uid,pid,ppid,c,opri,ni,addr,sz,wchan,tname,time,ucmd";
    if (wanted->jobs)
        return "pid,pgid,sid,tname,time,ucmd";
    return wanted->bsd ? "pid,tname,stat,bsdtime,args" : "pid,tname,time,ucmd";
}

static void append_line(GString *text, const GPtrArray *chosen, char **cells, const gsize *width)
{
    for (guint c = 0; c < chosen->len; c++) {
        gboolean right = ((const Chosen *)chosen->pdata[c])->column->right;
        gboolean last = c + 1 == chosen->len;

        if (right)
            g_string_append_printf(text, "%*s", (int)width[c], cells[c]);
        else
            g_string_append_printf(text, "%-*s", last ? 0 : (int)width[c], cells[c]);
        g_string_append_c(text, last ? '\n' : ' ');
    }
}

static char *make_table(const Wanted *wanted, const Sandvirt__V1__PsResponse *response)
{
    const GPtrArray *chosen = wanted->columns;
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    g_autofree gsize *width = g_new0(gsize, chosen->len);
    GString *text = g_string_new(NULL);
    gboolean titled = FALSE;

    for (size_t i = 0; i <= response->n_rows; i++) {
        char **cells = g_new0(char *, chosen->len + 1);

        for (guint c = 0; c < chosen->len; c++) {
            const Chosen *one = chosen->pdata[c];

            cells[c] =
                i == 0 ? g_strdup(one->title) : one->column->cell(response->rows[i - 1], response);
            width[c] = MAX(width[c], strlen(cells[c]));
            titled |= i == 0 && *cells[c] && !wanted->no_header;
        }
        g_ptr_array_add(lines, cells);
    }
    for (guint i = titled ? 0 : 1; i < lines->len; i++)
        append_line(text, chosen, lines->pdata[i], width);
    return g_string_free(text, FALSE);
}

char *sv_ps_table(const Sandvirt__V1__PsResponse *response, char **args, GError **error)
{
    Wanted wanted = {.columns = g_ptr_array_new_with_free_func(chosen_free), .full = !*args};
    char *text = NULL;

    if (parse_args(&wanted, args, error) &&
        (wanted.columns->len > 0 || add_columns(&wanted, format_of(&wanted), error)))
        text = make_table(&wanted, response);
    g_ptr_array_unref(wanted.columns);
    return text;
}
