# SPDX-License-Identifier: Apache-2.0
"""What a user with an AMD GPU runs for us: `make test-gpu`; the same probes run small on the software device."""
