/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* tcp-serve ADDRESS PORT: sends back what comes, until end of file; for each connection. */
int verb_tcp_serve(int argc, char **argv);
/* tcp ADDRESS PORT: input there, its end too, and what comes to the output. */
int verb_tcp(int argc, char **argv);
/* tcp-sink ADDRESS PORT: takes one connection's bytes and says how many. */
int verb_tcp_sink(int argc, char **argv);
/* tcp-blast ADDRESS PORT SECONDS: sends as much as it can; prints MiB/s. */
int verb_tcp_blast(int argc, char **argv);
/* tcp-ping ADDRESS PORT COUNT: round trips of one byte with tcp-serve; prints the median in microseconds. */
int verb_tcp_ping(int argc, char **argv);
/* udp-serve ADDRESS PORT: sends datagrams back. udp ADDRESS PORT TEXT: prints the answer. */
int verb_udp_serve(int argc, char **argv);
int verb_udp(int argc, char **argv);
/* nf-tables: the names of those of nf_tables in this network namespace. */
int verb_nf_tables(int argc, char **argv);
/* unix-serve PATH TEXT: gives one client of the socket TEXT. unix PATH: prints what comes. */
int verb_unix_serve(int argc, char **argv);
int verb_unix(int argc, char **argv);
