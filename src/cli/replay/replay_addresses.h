/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TS_CLI_REPLAY_REPLAY_ADDRESSES_H
#define TS_CLI_REPLAY_REPLAY_ADDRESSES_H

/*
 * Starts this process again, with the same arguments, without address space randomisation. Returns
 * if that was done before or is not possible, which it then says. Call it before any thread starts.
 */
void ts_replay_fix_addresses(void);

#endif
