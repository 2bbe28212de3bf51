# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The crates of others, compiled, lie in the cache, so that a new checkout does not compile
# them again. What of it fits is cargo's decision: it compares compilers, features and
# sources by itself. The build root's own cargo, on hosts without one, does without. Sourced
# after lib.sh.

# kept_crates: the folder for this compiler and these versions.
kept_crates() {
	printf '%s/crates-%s\n' "$cache" "$(hash_of "$(run_cargo -vV)" "$(cat "$top/Cargo.lock" "$top/Cargo.toml")")"
}

# take_crates: gives them to a checkout that has compiled nothing yet.
take_crates() {
	local kept target
	target=$(cargo_target)
	host_cargo_fits && [ ! -e "$target" ] || return 0
	kept=$(kept_crates)
	[ -d "$kept" ] || return 0
	mkdir -p "${target%/*}"
	# Another checkout may be replacing the folder: then this one compiles them.
	cp -a "$kept" "$target.new" 2>/dev/null && mv -T "$target.new" "$target" || rm -rf "$target.new"
}

# keep_crates: puts them into the cache, unless they are there, in place of older ones.
# Both profiles have to be compiled.
keep_crates() {
	local kept target new profile
	host_cargo_fits || return 0
	kept=$(kept_crates)
	target=$(cargo_target)
	[ ! -d "$kept" ] && [ -d "$target/release/deps" ] && [ -d "$target/debug/deps" ] || return 0
	new=$kept.$$
	mkdir -p "$new"
	for profile in release debug; do
		mkdir "$new/$profile"
		cp -a "$target/$profile"/{deps,build,.fingerprint} "$new/$profile/"
		forget_own "$new" "$profile"
	done
	rm -rf "$cache"/crates-????????????
	mv -T "$new" "$kept" 2>/dev/null || rm -rf "$new"
}

# forget_own FOLDER PROFILE: removes what belongs to the crates of the checkout.
forget_own() {
	local packages
	packages=$(run_cargo metadata --no-deps --format-version 1 |
		python3 -c 'import json, sys
for package in json.load(sys.stdin)["packages"]:
    print("-p", package["name"])')
	# shellcheck disable=SC2086
	run_cargo clean --quiet --profile "${2/debug/dev}" --target-dir "$1" $packages
}
