#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# "smc check": each thing that can be missing is found, with a remedy, and told by
# the exit code.
#
# vm: --topology pair --timeout 300
# slow: waits for answers that do not come

. "$(dirname "$0")/../lib.sh"
need_module

# finds NAME CODE PATTERN COMMAND...: it must end with this code and print such a line.
finds() {
	local name=$1 code=$2 pattern=$3 got
	shift 3
	"$@" >"$last" 2>&1
	got=$?
	echo "exit code $got, expected $code and: $pattern" >>"$last"
	[ $got -eq "$code" ] && grep -q -- "$pattern" "$last"
	result $? "$name" "$last"
}

# 1. This host.
finds "nothing is missing here" 0 "^good  *an enterprise identifier is set" in_a smc check
finds "and basic is the same" 0 "^good  *rxe0 port 1 is active" in_a smc check basic
ip netns add d
finds "a namespace without device" 1 "^MISSING  *there is a RoCE device" ip netns exec d smc check
ip netns delete d
in_a smc_pnet -a -I veth0 NETA
finds "a network without port" 1 "^MISSING  *the network NETA of veth0 has an RDMA port" in_a smc check
in_a smc_pnet -f
in_a nft add table inet strict
in_a nft 'add chain inet strict in { type filter hook input priority 0; policy drop; }'
finds "a firewall that may be in the way" 0 '^unsure  *the firewall chain "inet strict in"' in_a smc check
in_a nft delete table inet strict
eid=$(in_a smcr ueid | tr -d ' ')
in_a smcr ueid flush
finds "no identifier" 1 '^MISSING  *an enterprise identifier' in_a smc check
in_a smcr ueid add "$eid"
finds "JSON" 0 '"verdict":"good"' in_a smc --json check basic
finds "a wrong word" 2 "unrecognized subcommand" in_a smc check everything

# 2. The path of a SYN.
echo_server a smc "$A" 7000
echo_server a tcp "$A" 7002
finds "a server with SMC" 0 "^good  *the server speaks SMC" in_b smc check syn "$A:7000"
finds "a server on TCP" 0 "^unsure  *the server speaks SMC" in_b smc check syn "tcp://$A:7002/"
echo_server a tcp6 "$A6" 7006
finds "IPv6" 0 "^good  *\\[$A6\\]:7006 accepts connections" in_b smc check syn "[$A6]:7006"
finds "no server" 1 "It refuses" in_b smc check syn "$A:7009"
finds "no host" 1 "does not answer at all" in_b smc check syn 10.9.0.77:80 --timeout 1.5
middlebox a strip-syn 7000
finds "a path that strips the option" 0 "^unsure .*keeps the option" in_b smc check syn "$A:7000"
stop_middlebox a
middlebox a drop 7000
finds "a path that discards SYNs" 1 "^MISSING  *SYNs with the SMC option get through" \
	in_b smc check syn "$A:7000" --timeout 1.5
stop_middlebox a
finds "not without rights" 3 "run it again as root" \
	ip netns exec b setpriv --reuid 65534 --regid 65534 --clear-groups smc check syn "$A:7000"
finds "a name that is none" 3 "check its spelling" in_b smc check syn no.such.host.invalid:80

# 3. From end to end.
start ip netns exec a sh -c "exec smc --json check listen >'$WORK/answered' 2>'$WORK/listen'"
wait_port a 4300
finds "a connection over SMC-R" 0 "^good  *the peer uses SMC: it is over SMC-R with rxe0" \
	smcr in_b smc check connect "$A"
finds "data goes there and back" 0 "256 KiB come back unchanged" in_b smc check connect "$A:4300"
check "the other end tells of it" grep -q '"mode":"SMCR"' "$WORK/answered"
remove_rxe b rxe1
finds "a connection on TCP" 1 "^MISSING  *this end uses SMC" in_b smc check connect "$A"
add_rxe b rxe1
finds "nobody listens" 1 "run \"smc check listen\" on the peer" in_b smc check connect "$A:4301"

# 4. The same with the other end started by ssh: here a program that knows how to get to the other
# namespace.
mkdir "$WORK/ssh"
cat >"$WORK/ssh/ssh" <<'END'
#!/bin/sh
# The command is the last argument. There is no configuration to tell.
[ "$1" != -G ] || exit 1
for command; do :; done
exec ip netns exec a sh -c "$command"
END
chmod +x "$WORK/ssh/ssh"
by_ssh() {
	ip netns exec b env PATH="$WORK/ssh:$PATH" smc check connect --ssh "root@$A" "$@"
}
left() {
	listening a 4300 || pgrep -f '[-]-attached'
}
not_left() {
	wait_for 5 eval '! left'
}
check "with the device back, connections use SMC-R" wait_for 15 smcr in_b smc check connect "$A"
finds "a port that is taken there" 1 "It says: 0.0.0.0:4300 cannot be listened at" by_ssh
stop_all
finds "SMC-R with a listener by ssh" 0 "^good  *this end uses SMC: it is over SMC-R with rxe1" smcr by_ssh
finds "the other end's view" 0 "^good  *the peer uses SMC: it is over SMC-R with rxe0" smcr by_ssh "$A:4302"
finds "and its end of it" 0 "^good  *root@$A saw the exchange to its end" smcr by_ssh
over_v6() {
	by_ssh "$A6" | grep "^good  *a connection to \\[$A6\\]:4300 is made"
}
check "IPv6" over_v6
finds "JSON" 0 '"what":"root@.* listens at port 4300","verdict":"good"' by_ssh --json
check "no listener is left" not_left
remove_rxe b rxe1
finds "one on TCP with a listener by ssh" 1 "^MISSING  *the peer uses SMC" by_ssh
add_rxe b rxe1
in_a nft add table inet strict
in_a nft 'add chain inet strict in { type filter hook input priority 0; }'
in_a nft add rule inet strict in tcp dport 4300 drop
finds "a firewall" 1 "let the firewalls pass its TCP port" by_ssh --timeout 2
in_a nft delete table inet strict
check "no listener is left then" not_left
finds "another host" 1 "see that it leads to root@$A" by_ssh "$B"
check "no listener is left after that" not_left
check "the connections are gone" wait_for 20 quiet a b
done_testing
