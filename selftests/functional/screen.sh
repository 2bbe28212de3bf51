#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What the screens of "smc top" and "smc monitor" show while connections work, what
# keys do, and how they leave the terminal.
#
# vm: --topology pair --timeout 400

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../terminal.sh"
need_module

bar='(▁|▂|▃|▄|▅|▆|▇|█)'
rate='[0-9.]+[KM]'

stay_on_tcp() {
	ping_from_b smc "$A" 7002
}

# hold PORT: a connection that does nothing.
hold() {
	start ip netns exec b smc_stream ping --family smc --addr "$A" --port "$1" --hold 300000 --timeout 400
}

# over PROCESS: it has ended, whether or not anybody asked how.
over() {
	! grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$1/status"
}

# connections COUNT: that many over SMC-R, and one on TCP.
connections() {
	on_screen "Connections: $1 over SMC-R, 1 on TCP"
}

# first_row PATTERN: the first row of the table is so.
first_row() {
	wait_for 30 sh -c 'grep -A 1 -E "^(Local|Group) " "$1" | grep -qE -- "$2"' - "$screen" "$1" || {
		cat "$screen"
		return 1
	}
}

start_servers() {
	echo_server a smc "$A" 7000
	echo_server a tcp "$A" 7002
}

start_servers
hold 7000
hold 7002
start smc_stream both --server-ns a --client-ns b --family smc --addr "$A" --port 7400 --bytes 8G \
	--seed "$SEED" --timeout 390

# 1. The tables of the live view.
terminal 30 100 ip netns exec b smc top
check "the sums" on_screen "^ Sent $rate/s  Received .*/s  Connections: [2-9] over SMC-R, 1 on TCP"
smcr_count=$(sed -n 's/.*Connections: \([0-9]*\) over SMC-R.*/\1/p' "$screen")
check "the links are shown first" on_screen "^ Links: 1 ─"
check "the rate of the link" first_row "^[0-9a-f]{8} +1 +rxe1/1 .* [1-9] +$rate "
check "a picture of what was sent" on_screen "^ Sent .* highest $rate bytes/s"
check "it has bars" on_screen "$bar"
press c
check "a key shows the connections" on_screen "^ Connections: $((smcr_count + 1)) ─"
check "the busiest comes first" first_row ":740[01] +SMCR +rxe1 +$rate "
check "that on TCP has its reason elsewhere, and no rates" on_screen ":7002 +TCP +- +- +- +-"
press Down
check "a row is marked" on_screen "^ Connections: 1 of $((smcr_count + 1)) ─"
press End
check "the last one" on_screen "^ Connections: $((smcr_count + 1)) of $((smcr_count + 1)) ─"
hold 7000
check "a new connection appears" connections $((smcr_count + 1))
stop "$started"
check "and is gone when it ends" connections "$smcr_count"
good_clients 0 stay_on_tcp
check "fallbacks are counted, with the reason" on_screen "^ Fallbacks in 1 s: [1-9].*client PEERNOSMC"
check "they have a picture too" on_screen "^ Fallbacks ─.* highest [1-9][0-9]* in 1 s"
show_screen
stop_good_clients
press Tab
check "another key shows the links again" on_screen "^ Links: 1 ─"
show_screen
press 'resize 12 80'
check "a small terminal has the table only" \
	wait_for 10 sh -c 'grep -q "^ Links: 1 " "$1" && ! grep -q highest "$1"' - "$screen"
press 'resize 45 120'
check "a large one has more" on_screen "^ Received .* highest"

# 2. What is shown goes away; the view stays.
remove_rxe b rxe1
check "without a device there is no link" on_screen "^ Links: 0 ─"
check "and no connection over SMC-R" on_screen "Connections: 0 over SMC-R"
add_rxe b rxe1
press q
check "q ends the view" left "exit status: 0"
stop_all

# 3. Other ends.
for ending in Esc Ctrl-C; do
	terminal 30 100 ip netns exec b smc top
	on_screen "q quit" >/dev/null
	press "$ending"
	check "$ending ends it" left "exit status: 0"
done
terminal 30 100 ip netns exec b smc top
on_screen "q quit" >/dev/null
pkill -TERM -P "$terminal"
check "a signal ends it" left "exit status: 0"
terminal 30 100 ip netns exec b smc top
on_screen "q quit" >/dev/null
top=$(pgrep -P "$terminal")
stop "$terminal"
check "it ends with the terminal" wait_for 10 over "$top"
terminal 30 100 ip netns exec b smc top
on_screen "q quit" >/dev/null
pkill -HUP -P "$terminal"
check "that signal from a process ends it as others do" left "exit status: 0"
terminal 30 100 ip netns exec b smc top -i 0
check "a mistake is a sentence on the terminal as it was" left "exit status: 1"
check "the sentence" on_screen "^smc: the interval must be at least 0.05 seconds\.$"

# 4. Events.
start_servers
check "with the device back, connections use SMC-R" wait_for 15 smcr ping_from_b smc "$A" 7000
terminal 30 160 ip netns exec b smc monitor
check "the monitor waits" on_screen "^smc: waiting for events\.$"
ping_from_b smc "$A" 7000 >/dev/null
check "a connection over SMC-R" on_screen "^[0-9:.]{12} connection up [0-9a-f]{8} over rxe1 .* to $A:7000$"
check "its end" on_screen "^[0-9:.]{12} connection down [0-9a-f]{8} over rxe1 "
stay_on_tcp >/dev/null
stay_on_tcp >/dev/null
check "one on TCP, with the reason" on_screen "^[0-9:.]{12} fallback .* to $A:7002: the peer does not offer SMC$"
check "what to do about that" on_screen "^    Load an SMC "
remove_rxe b rxe1
check "a link group that ends, with the reason" \
	on_screen "^[0-9:.]{12} group down [0-9a-f]{8} over rxe1: its device was removed$"
check "what to do is said once" is 1 grep -c "^    Load an SMC" "$screen"
add_rxe b rxe1
show_screen
press Ctrl-C
check "Ctrl-C ends it" left "signal: 2 (SIGINT)"
stop_all
check "the connections are gone" gone 20 a b
done_testing
