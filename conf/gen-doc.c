/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Build tool: prints sandvirt.conf ("gen-doc sample") or docs/configuration.md ("gen-doc markdown").
 * Built with the default folders of a packaged installation in mind (prefix /usr). */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "conf/keys.h"

int main(int argc, char **argv)
{
    g_autofree char *text = NULL;
    if (argc == 2 && strcmp(argv[1], "sample") == 0)
        text = sv_keys_sample();
    else if (argc == 2 && strcmp(argv[1], "markdown") == 0)
        text = sv_keys_markdown();
    if (text == NULL) {
        fprintf(stderr, "usage: gen-doc sample|markdown\n");
        return 2;
    }
    fputs(text, stdout);
    return 0;
}
