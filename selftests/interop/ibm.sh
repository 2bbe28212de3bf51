#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# IBM's smc-tools, unmodified, print the same on smc_rs as on the SMC that comes with the
# kernel. Host 1 has the one and host 2 the other; each does to the other what the other does to
# it, so that both are in the same situation, and what the tools print is compared, but for
# what two hosts cannot have in common, and for what `expected` lists with its reason. The tools
# are looked for in the folder smc-tools of the build folder: Documentation/testing.rst says how
# they get there.
#
# vm: --kernel reference --module smc_rs,smc --topology hosts --timeout 900
# slow: needs programs that are not made here

. "$(dirname "$0")/lib.sh"
announce "smc_rs" "smc"
# Here they are programs.
unset -f smcr
IBM=/out/smc-tools
ENDS=$(dirname "$0")/../functional/ends.py
SHOWN=/out/ibm
for tool in smcss smcr smcd smc_pnet smc_chk smc_rnics; do
	[ -x "$IBM/$tool" ] || {
		skip "IBM's smc-tools" "$tool is not in the folder smc-tools of the build folder: see testing.rst"
		done_testing
	}
done
# smc_chk is a script that calls the others, and smc_run, which is this project's; smc_rnics is one
# that refuses other machines than those of s390.
PATH=$IBM:$PATH
mine=$A peer=$B mine6=fd09::1 peer6=fd09::2
[ "$HOST" = 1 ] || mine=$B peer=$A mine6=fd09::2 peer6=fd09::1

# expected NAME: differences that are right, as lines of `diff` from the kernel's SMC to smc_rs.
# Anything else is a failure, and so is one of them that is not there.
expected() {
	case $1 in
	# The kernel's SMC has a device for shared memory within the host, so that to it there is a
	# system identifier, an empty one. smc_rs has neither, and says what the kernel's says without.
	*"smcd seid" | *"smcd seid show")
		printf '%s\n' "- [disabled]" "+n/a"
		;;
	"nobody: smcd seid "*)
		printf '%s\n' "-Error: Operation not permitted" "+Error: System EID not available"
		;;
	*"smcd seid "*)
		printf '%s\n' "-Error: operation not supported by kernel" "+Error: System EID not available"
		;;
	# The kernel's has one row for a device, smc_rs one for each of its ports.
	*"smc_pnet -a NETA -D rxe0 -P 2")
		printf '%s\n' "-smc_pnet: Object exists" "-exit status 1" "+exit status 0"
		;;
	*"smc_pnet" | *"smc_pnet -s NETA"*)
		case $1 in named:*) echo "+NETA n/a rxe0 2" ;; esac
		;;
	# Names are kept in capitals, and to smc_rs are the same in small letters in all requests.
	*"smc_pnet -s neta")
		printf '%s\n' "+NETA eth0 n/a 255" "+NETA n/a rxe0 1" "+NETA n/a rxe0 2"
		;;
	# Over IPv6 there is nothing to offer but shared memory. A client on smc_rs has none and stays
	# on TCP of its own accord, where the kernel's offers its own and is refused. Without a common
	# identifier the kernel's says that there is no device, smc_rs what is missing; IBM's tools have
	# no word for that reason.
	"connected: smcss" | "connected: smcss -a" | "connected: smcss "*-d* | "connected: smcss -a -W")
		case $1 in *-R*) return ;; esac
		printf '%s\n' \
			"-ACTIVE 00000 INODE MINE6:7004 PEER6:PORT 0000 TCP 0x05000000/0x03030000" \
			"-ACTIVE 00000 INODE MINE6:PORT PEER6:7004 0000 TCP 0x05000000/0x03030000" \
			"+ACTIVE 00000 INODE MINE6:7004 PEER6:PORT 0000 TCP 0x03030000" \
			"+ACTIVE 00000 INODE MINE6:PORT PEER6:7004 0000 TCP 0x03030000" \
			"-ACTIVE 00000 INODE MINE:7000 PEER:PORT 0000 TCP 0x03030000" \
			"+ACTIVE 00000 INODE MINE:7000 PEER:PORT 0000 TCP 0x03030008" \
			"-ACTIVE 00000 INODE MINE:PORT PEER:7000 0000 TCP 0x05000000/0x03030008" \
			"+ACTIVE 00000 INODE MINE:PORT PEER:7000 0000 TCP 0x05000000/0x03030000"
		;;
	*" -ad stats" | *" -d stats show")
		case $1 in idle:* | namespace:*) return ;; esac
		printf '%s\n' "- PEERDECL 1" "+ [unknown] 1" "- PEERDECL 2" "+ NOSMCDEV 1" "+ PEERDECL 1"
		;;
	"ended: smcr -d stats")
		printf '%s\n' "- PEERDECL 0" "+ [unknown] 0" "+ NOSMCDEV 0"
		;;
	# Of a connection that its program has closed, and the peer has not, the kernel's knows no more.
	"half: smcss")
		echo "+PEERCLOSEWAIT1 00000 INODE MINE:PORT PEER:7008 0000 SMCR"
		;;
	"half: smcss -a -d")
		echo "+PEERCLOSEWAIT1 00000 INODE MINE:PORT PEER:7008 0000 SMCR R-W TOKEN 00010000 00010000" \
			"00010000 0000:00000000 0000:00000000 00:00 0000:00000000 0000:00000000 00:40" \
			"0000:00000000 0000:00000000 0000:00000000"
		;;
	# A namespace is shown the link groups of all by the kernel's, its own by smc_rs.
	"namespace: smcr linkgroup")
		printf '%s\n' "-CLIENT-00 CLNT SINGLE 0 3" "-LG-ID LG-Role LG-Type VLAN #Conns PNET-ID" \
			"-SERVER-00 SERV SINGLE 0 3"
		;;
	"namespace: smcr linkgroup link-show")
		printf '%s\n' "-CLIENT-00 CLNT SINGLE LINK_ACTIVE 3" \
			"-LG-ID LG-Role LG-Type Net-Dev Link-State #Conns" "-SERVER-00 SERV SINGLE LINK_ACTIVE 3"
		;;
	esac
}

# Names for the addresses of the two hosts, the ports of clients, the hosts, and the numbers of
# the link groups in which this host is the one or the other, without those of their links.
as_server='' as_client=''
same_names() {
	sed -E "s/\b$mine\b/MINE/g; s/\b$peer\b/PEER/g
		s/\b$mine6\b/MINE6/g; s/\b$peer6\b/PEER6/g
		s/\bffff:0a09:000$HOST\b/ffff:MINE/g; s/\bffff:0a09:000$((3 - HOST))\b/ffff:PEER/g
		s/\bhost$HOST\b/MYSELF/g; s/\bhost$((3 - HOST))\b/OTHER/g
		s/((MINE|PEER)6?:)[0-9]{5}\b/\1PORT/g
		s/\b${as_server:-none}(..)\b/SERVER-\1/g; s/\b${as_client:-none}(..)\b/CLIENT-\1/g
		s/[[:space:]]+/ /g; s/ \$//"
}

# Sockets are listed in no order. Inodes and tokens are numbers that nobody can compare.
sockets() {
	sed -E 's/^([A-Z0-9]+ +[0-9]{5}) [0-9]{7} /\1 INODE /
		s,(SMCR +[<R]-[>W] +)[0-9a-f]{8} ,\1TOKEN ,' | same_names | sort
}
# The first of two groups is the first of this host or the other.
groups() {
	same_names | sort
}
# For a device that is not on a PCI bus there are no attributes about its place, and the tool
# prints what was in its memory.
devices() {
	sed -E '2,$s/(ACTIVE +)0x[0-9a-f]+( +)/\1TYPE\2/; s/(TYPE +(Yes|No) +)[0-9a-f]{4} .* [0-9a-f]{4} +([0-9]+ )/\1PCI \3/' |
		same_names
}

# show COMMAND...: keeps what it prints and its exit status in this situation for the comparison.
names=()
situation='' as=()
show() {
	local name="$situation: $*" file
	while [ -e "$SHOWN/$own/$(file_of "$name")" ]; do
		name+=" again"
	done
	names+=("$name")
	file=$(file_of "$name")
	{
		timeout 120 "${as[@]}" "$@" </dev/null 2>&1
		echo "exit status $?"
	} >"$SHOWN/$own/$file.raw"
	case $* in
	*smcss*) sockets ;;
	*"smcr "*"linkgroup"*) groups ;;
	*"smcr "*"device"*) devices ;;
	*) same_names ;;
	esac <"$SHOWN/$own/$file.raw" >"$SHOWN/$own/$file"
}
file_of() {
	same_names <<<"$1" | tr -c 'A-Za-z0-9.\n-' _
}

# holds PATTERN: such a connection is listed.
holds() {
	smcss | grep -q -- "$1"
}

mkdir -p "$SHOWN/$own"
rm -f "$SHOWN/$own"/*

situation=idle
for tool in smcr smcd; do
	show $tool
	show $tool -v
	show $tool help
	show $tool nonsense
	show $tool info
	show $tool info help
	show $tool linkgroup
	show $tool linkgroup help
	show $tool device
	show $tool -d device
	show $tool device help
	show $tool stats
	show $tool -d stats
	show $tool stats json
	show $tool stats help
	show $tool seid
	show $tool ueid
	show $tool ueid help
	show $tool ueid add IBM-1
	show $tool ueid add IBM-1
	show $tool ueid add "lower case"
	for eid in IBM-2 IBM-3 IBM-4; do
		show $tool ueid add $eid
	done
	show $tool ueid show
	show $tool ueid del IBM-1
	show $tool ueid del IBM-1
	show $tool ueid flush
	show $tool ueid show
	check "the identifier is there again" smcr ueid add "$EID"
done
show smcd seid show
show smcd seid enable
show smcd seid disable
show smcr device all
show smcr device netdev eth0
show smcr device netdev lo
show smcr device ibdev rxe0
show smcr device ibdev none
show smcss
show smcss -a
show smcss -a -D -R -W
show smcss -l -a
show smcss -h
show smc_pnet
show smc_pnet -h
show smc_pnet -v
show smc_pnet -a NETA -I eth0
show smc_pnet -a NETB -I eth0
show smc_pnet -a NETA -D rxe0
show smc_pnet -a NETB -D rxe0 -P 1
show smc_pnet -a NETA -D rxe0 -P 2
show smc_pnet -a NETC -I lo -D other0 -P 2
show smc_pnet -a NETC -D other1 -P 3
show smc_pnet -a NETD
show smc_pnet -a NETD -I nosuch0
show smc_pnet -a "a name that is too long for it" -I eth0
show smc_pnet -a NET_E -I eth0
situation=named
show smc_pnet
show smc_pnet -s NETA
show smc_pnet -s neta
show smc_pnet -s NETZ
show smc_pnet -s NETA -I eth0
show smcr device
show smc_rnics
show smc_rnics -a -I -r
show smc_rnics -h
show smc_chk
show smc_chk -v
show smc_chk -i eth0
show smc_chk -i nosuch0
show smc_chk -s eth0
show smc_pnet -d NETA
show smc_pnet -d NETA
show smc_pnet -f
show smc_pnet

situation=nobody
as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
show smcr ueid show
show smcr ueid add IBM-1
show smcr ueid del "$EID"
show smcr ueid flush
show smcd seid disable
show smcr info
show smcr device
show smcr linkgroup
show smcr -a stats
show smcss -a
show smc_pnet
show smc_pnet -a NETA -I eth0
show smc_pnet -d NETA
show smc_pnet -f
as=()
vm-sync idle

# Servers on SMC, on TCP, with IPv6, and one that leaves its end open.
start smc_stream echo --family smc --addr "$mine" --port 7000
start smc_stream echo --family tcp --addr "$mine" --port 7002
start smc_stream echo --family smc6 --addr "$mine6" --port 7004
start smc_run python3 "$ENDS" server "$mine" 7006
for port in 7000 7002 7004 7006; do
	check "a server listens on port $port" wait_for 60 here $port
done
situation=servers
show smcss
show smcss -l
show smcss -l -W
show smcss -a
show smcss -a -R
vm-sync serving

# hold FAMILY PORT: a client that stays.
hold() {
	local address=$peer
	case $1 in *6) address=$peer6 ;; esac
	start smc_stream ping --family "$1" --addr "$address" --port "$2" --count 10 --hold 800000 --timeout 900
}

# One host after the other, so that the order of things is known.
for turn in 1 2; do
	if [ "$turn" = "$HOST" ]; then
		hold smc 7000
		check "a client over SMC-R" wait_for 60 holds " $peer:7000 .*SMCR"
		hold smc 7002
		check "a client of TCP" wait_for 60 holds " $peer:7002 .*TCP"
		hold tcp 7000
		hold smc6 7004
		check "a client with IPv6" wait_for 60 holds " $peer6:7004 .*TCP"
		start smc_run python3 "$ENDS" shut "$peer" 7006
		check "a client that ended its direction" wait_for 60 holds "^PEERCLOSEWAIT1.* $peer:7006 "
		start smc_run python3 "$ENDS" stay "$peer" 7006
		check "a client that nobody accepts" wait_for 60 holds "^ACTIVE.* $peer:7006 .*SMCR"
		smcr ueid flush && smcr ueid add OTHER
		hold smc 7000
		check "a client with another identifier" wait_for 60 holds " $peer:7000 .*TCP 0x05000000/"
		smcr ueid flush && smcr ueid add "$EID"
	fi
	vm-sync "turn$turn"
done

situation=connected
as_server=$(smcr linkgroup | sed -n 's/^\([0-9a-f]\{6\}\)00 SERV.*/\1/p')
as_client=$(smcr linkgroup | sed -n 's/^\([0-9a-f]\{6\}\)00 CLNT.*/\1/p')
check "a link group of each role" test "${#as_server}${#as_client}" = 66
show smcss
show smcss -a
show smcss -a -W
show smcss -l
show smcss -d
show smcss -a -d -W
show smcss -R
show smcss -a -R -W
show smcss -a -d -R -W
show smcss -D
show smcss -a -D -W
show smcss -a -R -D -W
for words in "" show all "show all" "netdev eth0" "netdev lo" "ibdev rxe0" "ibdev none" \
	link-show "link-show all" "link-show netdev eth0" "link-show ibdev rxe0" \
	"${as_server}00" "${as_client}00" "${as_server}01" "link-show ${as_server}00" 00ff00 nonsense; do
	# shellcheck disable=SC2086
	show smcr linkgroup $words
done
for details in -d -dd; do
	show smcr $details linkgroup
	show smcr $details linkgroup link-show
	show smcr $details linkgroup "${as_client}00"
done
show smcd linkgroup
show smcd -d linkgroup show all
situation=namespace
ip netns add other
as=(ip netns exec other)
show smcss -a
show smcr info
show smcr linkgroup
show smcr linkgroup link-show
show smcr -d device
show smcr ueid
show smcr -ad stats
show smc_pnet
as=()
ip netns delete other
situation=connected
show smcr device
show smcr -d device
for tool in smcr smcd; do
	show $tool stats
	show $tool -a stats
	show $tool -ad stats
	show $tool -d stats show
	show $tool -a stats json
	show $tool -ad stats json
done
vm-sync shown
stop_all
for pattern in :7000 :7002 :7004 :7006; do
	check "no connection of port $pattern is left" wait_for 60 eval "! smcss -a | grep -q $pattern"
done
vm-sync stopped
situation=ended
show smcss -a
show smcr linkgroup
show smcr device
show smcr -ad stats
show smcr -ad stats json
show smcd -a stats
show smcr stats reset
show smcr stats
show smcr -d stats
show smcr -a stats
show smcr stats json
show smcd stats reset
show smcd stats

# Clients that close while their servers do not.
situation=half
start smc_run python3 "$ENDS" server "$mine" 7008
check "a server listens on port 7008" wait_for 60 here 7008
vm-sync half
start smc_run python3 "$ENDS" close "$peer" 7008
check "its client closes" wait_for 60 holds "^APPCLOSEWAIT1.*:7008"
vm-sync closed
show smcss
show smcss -a -d
vm-sync seen
stop_all
check "no connection of port 7008 is left" wait_for 60 eval "! smcss -a | grep -q :7008"

# The test of a path: with a server, with one of TCP, and with none.
situation=path
for turn in 1 2; do
	if [ "$turn" != "$HOST" ]; then
		start smc_chk -S -p 37373
		start smc_stream echo --family tcp --addr "$mine" --port 37375
		check "the server of smc_chk listens" wait_for 60 here 37373
		check "one of TCP listens" wait_for 60 here 37375
	fi
	vm-sync "chk$turn"
	if [ "$turn" = "$HOST" ]; then
		show smc_chk -C "$peer" -p 37373
		show smc_chk -C "$peer" -p 37375
		show smc_chk -C "$peer" -p 37379
	fi
	vm-sync "checked$turn"
	stop_all
done
vm-sync all

compared() {
	local file
	file=$(file_of "$1")
	diff -U0 "$SHOWN/smc/$file" "$SHOWN/smc_rs/$file" | grep '^[-+][^-+]' >"$WORK/differences"
	expected "$1" | diff - "$WORK/differences"
}
if [ "$HOST" = 1 ]; then
	for name in "${names[@]}"; do
		check "IBM's tools, $name" compared "$name"
	done
fi
vm-sync compared
done_testing
