# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The build root: a Debian system of one fixed release, so that the release of
# the host does not matter.

# explain LOG WHAT: turns the log of a failed step into one sentence.
explain() {
	local log=$1 what=$2
	if grep -qiE 'no space left on device' "$log"; then
		die "The disk became full during '$what': make room under $cache and run the same command again (it goes on where it stopped)."
	fi
	if grep -qiE 'temporary failure|could not resolve|failed to fetch|unable to connect|could not connect|connection timed out|network is unreachable|no longer has a Release file' "$log"; then
		die "The Debian mirror could not be reached during '$what': check the network connection (or name another mirror in SMC_RS_MIRROR) and run the same command again."
	fi
	if grep -qiE 'unable to locate package|has no installation candidate' "$log"; then
		die "Debian does not have all packages needed for '$what': see the list of missing ones in $log."
	fi
	if grep -qiE 'NO_PUBKEY|keyring|not signed' "$log"; then
		die "This host does not know the signing keys of Debian $suite: run 'apt-get install --only-upgrade debian-archive-keyring' and try again."
	fi
	die "The step '$what' failed: the reason is at the end of $log."
}

need_free() {
	local need=$1 what=$2 have
	have=$(df --output=avail -BM "$cache" | tail -1 | tr -dc 0-9)
	[ "$have" -ge $((need * 1024)) ] ||
		die "There is not enough room for $what: $need GiB are needed under $cache and $((have / 1024)) GiB are free; make room, or name another folder in SMC_RS_CACHE."
}

make_root() {
	local root tmp log
	root=$(root_dir)
	tmp=$root.new log=$cache/log/root.log
	need_free 8 "the build root and the kernel tree"
	rm -rf --one-file-system "$tmp"
	# The backports of the release come from the same mirror as the release.
	mmdebstrap --mode=root --variant=apt --components=main \
		--include="$(root_packages | tr -s ' \n' ',' | sed 's/,$//')" \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		--customize-hook='sed -n "s/ '"$suite"' main/ '"$suite"'-backports main/p" "$1/etc/apt/sources.list" >"$1/etc/apt/sources.list.d/backports.list"' \
		--customize-hook='mkdir -p "$1/kernel" "$1/src" "$1/out" "$1/job" "$1/vm"' \
		"$suite" "$tmp" ${SMC_RS_MIRROR:+"$SMC_RS_MIRROR"} >"$log" 2>&1 ||
		{
			rm -rf --one-file-system "$tmp"
			explain "$log" "build root"
		}
	mv "$tmp" "$root"
}
