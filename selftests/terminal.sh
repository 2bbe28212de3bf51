# SPDX-License-Identifier: GPL-2.0
#
# Programs on a terminal, for tests that source this file after lib.sh: one at a time.

screen=$WORK/screen
mkfifo "$WORK/keys"
exec {keys}<>"$WORK/keys"

# terminal ROWS COLUMNS COMMAND...: the command runs on a terminal of this size until it ends, or
# until `stop $terminal`, which hangs up.
terminal() {
	local rows=$1 columns=$2
	shift 2
	rm -f "$screen"
	smc_screen --rows "$rows" --columns "$columns" --screen "$screen" --keys "$WORK/keys" "$@" \
		>"$WORK/ended" 2>&1 &
	terminal=$!
	pids+=("$terminal")
}

# press KEY...: their names are those of smc_screen.
press() {
	printf '%s\n' "$@" >&"$keys"
}

# on_screen PATTERN: within half a minute a line of the screen is so.
on_screen() {
	wait_for 30 grep -qE -- "$1" "$screen" && return
	echo "no line of the screen is like: $1"
	cat "$screen" "$WORK/ended"
	return 1
}

# left PATTERN: the program ends so, and leaves the terminal as it was.
left() {
	wait_for 10 grep -q "ended ($1) and left the terminal as it was" "$WORK/ended" && return
	cat "$WORK/ended" "$screen"
	return 1
}

# show_screen: puts it into the test's output.
show_screen() {
	sed 's/^/# /' "$screen"
}
