#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What both ends say about a connection that stayed on TCP: its own reason, and the one that
# the peer gave. That of memory is in buftype.sh, which needs a kernel that can inject faults.
#
# vm: --topology pair --timeout 300
# waits

. "$(dirname "$0")/../lib.sh"
need_module

# said NAMESPACE: reason and peer's diagnosis of its sockets on TCP.
said() {
	ip netns exec "$1" smcss --json | of_json '*sorted({
		" ".join((s[key] or {}).get("name", "-") for key in ("fallback", "peer_diagnosis"))
		for s in x if s["mode"] == "TCP"}), sep="\n"'
}
port=7000
# stays_on_tcp WHY CLIENT SERVER [ARGUMENT...]: what the two ends of a connection say; nothing for
# one that is no SMC socket.
stays_on_tcp() {
	local why=$1 client=$2 server=$3
	shift 3
	start ip netns exec b smc_stream ping --family smc --addr "$A" --port "$port" --hold 60000 --timeout 90 "$@"
	check "$why: the client says $client" wait_for 20 is "$client" said b
	check "$why: the server says ${server:-nothing}" wait_for 20 is "$server" said a
	stop "$started"
	check "$why: the connection is gone" wait_for 20 is "" said b
}

echo_server a smc "$A" 7000
echo_server a tcp "$A" 7002
check "before anything is missing, connections use SMC-R" smcr ping_from_b smc "$A" 7000
port=7002
stays_on_tcp "server on TCP" "PEERNOSMC -" ""
port=7000
stays_on_tcp "client with fast open" "OPTUNSUPP -" "PEERNOSMC -" --before fastopen-connect
remove_rxe b rxe1
stays_on_tcp "no device at the client" "NOSMCDEV -" "PEERDECL NOSMCDEV"
add_rxe b rxe1
remove_rxe a rxe0
stays_on_tcp "no device at the server" "PEERDECL NOSMCDEV" "NOSMCDEV -"
add_rxe a rxe0
# Both namespaces are on one host, whose identifiers they share.
check "the identifiers are taken away" smc_ueid flush
stays_on_tcp "no identifier" "NOUEID -" "PEERDECL NOUEID"
check "one is there again" smc_ueid add SMC-RS-TEST
check "then connections use SMC-R" wait_for 20 smcr ping_from_b smc "$A" 7000

# Version 1 is for one subnet, and to be in one means to give it the same length.
stop_all
check "the connections are gone" gone 20 a b
check "the module is loaded for version 1" sh -c \
	'modprobe -r smc_rs && modprobe smc_rs v1_over_rocev2=1 && smc_ueid flush'
echo_server a smc 0.0.0.0 7000
check "in one subnet connections use SMC-R" wait_for 20 smcr ping_from_b smc "$A" 7000
ip -n a addr add 10.9.6.1/24 dev veth0
ip -n b addr add 10.9.6.2/25 dev veth0
A=10.9.6.1
stays_on_tcp "another subnet" "PEERDECL DIFFPREFIX" "DIFFPREFIX -"
stop_all
check "all sockets are gone" wait_for 20 no_sockets a b
done_testing
