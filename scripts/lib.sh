# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the scripts share: where things lie in the cache, how errors are told,
# and how a command is run inside the build root.

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${SMC_RS_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/smc_rs}
suite=trixie
series=${SMC_RS_KERNEL_SERIES:-7.3}
kind=${SMC_RS_KERNEL:-stock}

# Ends the script with one sentence for the person who started it.
die() {
	printf 'smc_rs: %s\n' "$*" >&2
	exit 1
}

note() {
	[ -n "${quiet:-}" ] || printf 'setup: %s\n' "$*" >&2
}

# hash_of TEXT...: a short name for a content.
hash_of() {
	printf '%s\n' "$@" | sha256sum | cut -c1-12
}

# A comment or a blank line in the package list does not change the content.
root_packages() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$top/scripts/setup.d/root-packages"
}

root_dir() {
	printf '%s/root-%s\n' "$cache" "$(hash_of "$suite" "${SMC_RS_MIRROR:-}" "$(root_packages)")"
}

# The kernel that was picked: assignments of `version` (of the packages),
# `release` (of the kernel) and `packages`.
picked_file() {
	printf '%s/kernel-%s.picked\n' "$cache" "$series"
}

have_picked() {
	[ -s "$(picked_file)" ]
}

# The kernel that is worked for: the packaged one, or one of the project's own,
# which are built from the same source. SMC_RS_KERNEL names it.
load_picked() {
	case $kind in
	stock | reference | debug | kasan) ;;
	*) die "There is no kernel '$kind': SMC_RS_KERNEL can be stock, reference, debug or kasan." ;;
	esac
	have_picked || die "The kernel has not been set up yet: run 'scripts/setup' first."
	# shellcheck disable=SC1090
	. "$(picked_file)"
	kernel_home=$cache/linux-$version
	src_dir=$kernel_home/src
	if [ "$kind" = stock ]; then
		build_dir=$kernel_home/build-$(build_key)
	else
		release=${version%%-*}-$kind
		kernel_home=$kernel_home/$kind-$(hash_of "$(build_key)" "$(own_config)")
		build_dir=$kernel_home/build
	fi
}

# The configuration of a kernel of the project's own, less its comments.
own_config() {
	sed -E -e '/^#( |$)/{/ is not set$/!d}' -e '/^$/d' "$top"/scripts/kernel-config/{base,"$kind"}.config
}

# The kernel's build tree fits one set of compilers only.
build_key() {
	hash_of 1 "$(awk -v RS= '/^Package: (rustc|rust-src|bindgen|clang-19|gcc-14)\n/' \
		"$(root_dir)/var/lib/dpkg/status" | grep -E '^(Package|Version):')"
}

# What every kbuild call needs, for use inside the root.
kbuild_args() {
	printf '%s\n' ARCH=x86 "KERNELRELEASE=$release" CLANG=clang-19 \
		LIBCLANG_PATH=/usr/lib/llvm-19/lib
	if [ "$kind" = kasan ]; then
		printf '%s\n' LLVM=-19
	else
		printf '%s\n' CROSS_COMPILE=x86_64-linux-gnu- CC=x86_64-linux-gnu-gcc-14 \
			HOSTCC=x86_64-linux-gnu-gcc-14
	fi
}

# Where in the build folder lies what is built for one kernel.
module_home() {
	[ "$kind" = stock ] || printf '%s/' "$kind"
}

# in_root [BIND=SOURCE:TARGET]... COMMAND...: runs COMMAND in the build root,
# in a mount namespace of its own, so that nothing stays mounted afterwards.
# With in_root=exec it takes the place of the calling script.
in_root() {
	local root binds=()
	root=$(root_dir)
	while [[ ${1:-} == BIND=* ]]; do
		binds+=("${1#BIND=}")
		shift
	done
	# shellcheck disable=SC2016
	${in_root:-} unshare --mount --propagation private bash -c '
		set -e
		root=$1; n=$2; shift 2
		mount --bind "$root" "$root"
		cd "$root"
		mount -t proc proc proc
		mount -t sysfs -o ro sys sys
		mount --rbind /dev dev
		mount -t tmpfs -o mode=1777 tmp tmp
		mount -t tmpfs -o mode=755 run run
		for ((; n > 0; n--)); do
			mkdir -p ".${1##*:}"
			mount --bind "${1%:*}" ".${1##*:}"
			shift
		done
		exec chroot . /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
			HOME=/root LC_ALL=C.UTF-8 TERM="${TERM:-dumb}" \
			"$@"
	' in-root "$root" "${#binds[@]}" ${binds+"${binds[@]}"} "$@"
}

# kernel_binds: the standard places of the kernel inside the root.
kernel_binds() {
	printf 'BIND=%s\n' "$kernel_home/pkg:/kernel/pkg" "$src_dir:/kernel/src" \
		"$build_dir:/kernel/build"
}

# at_least VERSION WANTED
at_least() {
	[ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -1)" = "$2" ]
}

# The host's cargo is used where it is new enough and the host's C library is no
# newer than the one in the virtual machines, else the build root's.
host_cargo_fits() {
	local cargo libc
	cargo=$(cargo --version 2>/dev/null | awk '{ print $2 }')
	libc=$(getconf GNU_LIBC_VERSION | awk '{ print $2 }')
	[ -n "$cargo" ] && at_least "$cargo" 1.85 && command -v cc >/dev/null && at_least 2.41 "$libc"
}

cargo_target() {
	if host_cargo_fits; then
		printf '%s\n' "${CARGO_TARGET_DIR:-$top/target}"
	else
		printf '%s\n' "${SMC_RS_BUILD:-$top/build}/target"
	fi
}

# run_cargo ARGS...: in the checkout.
run_cargo() {
	local build=${SMC_RS_BUILD:-$top/build}
	if host_cargo_fits; then
		(cd "$top" && nice cargo "$@")
	else
		mkdir -p "$build/cargo-home"
		cp /etc/resolv.conf "$(root_dir)/etc/resolv.conf"
		# The root trusts what the host trusts, such as a company's proxy.
		in_root "BIND=$top:/src" "BIND=$build:/out" BIND=/etc/ssl/certs:/etc/ssl/certs env -C /src CARGO_HOME=/out/cargo-home \
			CARGO_TARGET_DIR=/out/target nice cargo "$@"
	fi
}
