/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/svg.h"

#define ROW 22
#define LEFT 170
#define WIDTH 760
#define RIGHT 90
#define TOP 64

typedef struct {
    const char *prefix, *color;
} Color;
static const Color colors[] = {{"libvirt", "#d98e04"}, {"machine", "#8a6fb3"}, {"guest", "#2a7ab0"},
    {"crun", "#3c9a5f"}, {"", "#777777"}};

static const char *color_of(const char *name)
{
    guint i = 0;

    while (!g_str_has_prefix(name, colors[i].prefix))
        i++;
    return colors[i].color;
}

/* Numbers are printed with a point whatever the locale is. */
static void number(GString *svg, const char *name, double value)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf(
        svg, " %s=\"%s\"", name, g_ascii_formatd(buffer, sizeof(buffer), "%.1f", value));
}

static void text(GString *svg, double x, double y, const char *content)
{
    g_autofree char *escaped = g_markup_escape_text(content, -1);

    g_string_append(svg, "<text");
    number(svg, "x", x);
    number(svg, "y", y);
    g_string_append_printf(svg, ">%s%s", escaped,
        "<"
        "/text>\n");
}

/* 1, 2 or 5 times a power of ten: at most six lines. */
static double step_of(double total_ms)
{
    double step = 1;

    while (step * 6 < total_ms) {
        if (step * 12 >= total_ms)
            return step * 2;
        if (step * 30 >= total_ms)
            return step * 5;
        step *= 10;
    }
    return step;
}

static void grid(GString *svg, const SvTimeline *timeline, guint rows)
{
    double total = (double)MAX(timeline->total_us, 1) / 1000, step = step_of(total);

    for (double ms = 0; ms <= total; ms += step) {
        double x = LEFT + WIDTH * ms / total;
        g_autofree char *label = g_strdup_printf("%.0f ms", ms);

        g_string_append(svg, "<line stroke=\"#dddddd\"");
        number(svg, "x1", x);
        number(svg, "x2", x);
        number(svg, "y1", TOP);
        number(svg, "y2", TOP + ROW * rows);
        g_string_append(svg,
            "/"
            ">\n");
        text(svg, x - 16, TOP - 6, label);
    }
}

char *sv_timeline_title(const SvTimeline *timeline, const char *name)
{
    return g_strdup_printf("%s: ready after %.1f ms%s", name, (double)timeline->total_us / 1000,
        timeline->machine ? "" : " (in a machine that was there)");
}

char *sv_svg_timeline(const SvTimeline *timeline, const char *pod)
{
    GString *svg = g_string_new(NULL);
    double scale = (double)WIDTH / (double)MAX(timeline->total_us, 1);
    g_autofree char *title = NULL;
    guint rows = 0;

    for (guint i = 0; i < timeline->phases->len; i++)
        rows += ((const SvPhase *)timeline->phases->pdata[i])->length_us >= 1000;
    g_string_append_printf(svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n",
        LEFT + WIDTH + RIGHT, TOP + ROW * rows + 10);
    g_string_append(svg,
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/"
        ">\n");
    title = sv_timeline_title(timeline, pod ? pod : timeline->id);
    text(svg, 8, 18, title);
    text(svg, 8, 34, pod ? timeline->id : "");
    grid(svg, timeline, rows);
    rows = 0;
    for (guint i = 0; i < timeline->phases->len; i++) {
        const SvPhase *phase = timeline->phases->pdata[i];
        double x = LEFT + (double)phase->start_us * scale, y = TOP + ROW * rows;
        double width = MAX((double)phase->length_us * scale, 1);
        g_autofree char *length = g_strdup_printf("%.1f ms", (double)phase->length_us / 1000);

        if (phase->length_us < 1000)
            continue;
        rows++;
        text(svg, 8, y + 15, phase->name);
        g_string_append_printf(svg, "<rect fill=\"%s\" height=\"16\"", color_of(phase->name));
        number(svg, "x", x);
        number(svg, "y", y + 3);
        number(svg, "width", width);
        g_string_append(svg,
            "/"
            ">\n");
        text(svg, x + width + 4, y + 15, length);
    }
    g_string_append(svg,
        "<"
        "/svg>\n");
    return g_string_free(svg, FALSE);
}
