#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# smc_rs meets itself in SMC-R version 1. That needs RoCEv1 identifiers, which no
# software device has: a switch for tests only lets it use a RoCEv2 one. Without
# enterprise identifiers version 2 is not proposed.
#
# vm: --topology hosts --timeout 3600

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/matrix.sh"

announce "smc_rs v1" "smc_rs v1"
check "host $HOST: the module takes the switch" \
	sh -c 'modprobe -r smc_rs && modprobe smc_rs v1_over_rocev2=1 && smc_ueid flush'

do_row "first contact, version 1" smcr smcr first_contact 1.0
do_row "the link group is used again" smcr smcr again
do_row "stream in both directions at once" smcr smcr \
	stream --conns 2 --bytes 2M --bidir --msg-max 8M
do_row "small buffers" smcr smcr \
	stream --conns 2 --bytes 500K --bidir --msg-max 1M --sndbuf 16K --rcvbuf 16K
do_row "urgent data" smcr smcr stream --mode oob --conns 4 --bytes 10K
do_row "half-close" smcr smcr stream --mode half-close --conns 12 --parallel 4 --bytes 128K
do_row "client process killed" smcr smcr \
	stream --mode kill --victim client --conns 6 --bytes 1G --bidir
do_row "server process killed" smcr smcr \
	stream --mode kill --victim server --conns 6 --bytes 1G --bidir
do_row "300 connections at once" smcr smcr \
	stream --mode churn --conns 320 --parallel 300 --bytes 8K
do_row "no RDMA device at the server" "fallback any" "fallback $PEERDECL client" \
	without_device server
do_row "link groups expire" smcr smcr expired
done_testing
