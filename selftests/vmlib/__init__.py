# SPDX-License-Identifier: GPL-2.0
"""What selftests/vm consists of."""
