#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# As peer.sh, with the cases that wait for time-outs or send a lot, too.
#
# vm: --topology pair --timeout 1200
# slow: takes more than two minutes

PEER_ALL=1 exec "$(dirname "$0")/peer.sh"
