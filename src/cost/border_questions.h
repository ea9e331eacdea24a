// What loads ask at the border of what they read, as they run: of rows whether there is anything,
// of lanes which of them are within.  What is known of turns that are written apart is not asked.
#pragma once

#include "cost/walked_kernel.h"

namespace tiny {

// The share of a load's steps that ask whether they are beyond the border of what is read: of
// rows near it, where copies lie along them and the taps of their window are walked, those taps
// that are beyond it for some of the copies.  None where the taps at the border are so few that
// they are written apart.
double share_asked(const WalkedKernel& walk, const AccessInfo& a);

// The masks that a turn of the loops makes of lanes of a load, where more turns are at a border
// than are written apart: each turn of a tile's loop, and of taps in tiles at the border.  Copies
// that lie elsewhere share them.
double masks_made(const WalkedKernel& walk, const AccessInfo& a);

}  // namespace tiny
