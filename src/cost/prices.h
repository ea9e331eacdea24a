// What single steps of a kernel take on a core of a processor: the prices that its estimate adds
// up.
#pragma once

#include <cstddef>

namespace tiny {

// Cycles of one core, for as much of a vector as a unit computes at once where nothing else is
// said.  Of Zen 5 (Agner Fog, Instruction tables; measured where they differ; what moves lanes on
// Zen 4, whose units beside those of products do that) and near enough of other wide cores: what
// counts is how they stand to each other.  What moves and gathers lanes is a processor's own
// (Rates).
inline constexpr double kLoaded = 0.5;       // a load that lies in one line
inline constexpr double kLoadedAcross = 1;   // that lies in two, as most of a whole line's bytes do
inline constexpr double kStored = 1;         //
inline constexpr double kMultiplied = 0.5;   // a multiply-add, a sum, a comparison
inline constexpr double kDivided = 8;        //
inline constexpr double kDividedScalar = 3;  // one element
inline constexpr double kInsertMoves = 0.8;  // of a lane that lies apart into its vector
inline constexpr double kInsertIssued = 1.3;  // instructions of such a lane
inline constexpr double kGatherIssued = 3.2;  // in each of its cycles
inline constexpr double kExtractedLane = 1;   // or stored
inline constexpr double kMaskMade = 2;        // which lanes' indices are in order
// Which lanes of a register are loaded, where loops decide.
inline constexpr double kBorderMask = 0.5;
inline constexpr double kMaskIssued = 4;  // instructions of such masks
inline constexpr double kAsked = 1.5;     // a load that asks whether there is anything
// An index divided by a constant: multiplied and shifted.
inline constexpr double kIndexDivided = 1.5;
inline constexpr double kWordDivided = 20;  // an integer divided by another
inline constexpr double kLatency = 4;       // of an addition, for the next one that needs it
inline constexpr double kLookedUp = 120;  // of eight lanes, for the next lookup, whose index it is
// In tables larger than L2 (12 in a row of forests, Zen 5).
inline constexpr double kLookedUpFar = 260;
inline constexpr double kFolds = 4;  // halves of a vector that are moved onto the other
// Operations that take the greater or lesser of two floats, a NaN if one is (render/x86).
inline constexpr double kExtreme = 3;
inline constexpr double kLoopTurn = 1;     // a turn of a loop: a branch that is taken, and counters
inline constexpr double kLoopEntered = 6;  // a loop begins and ends: the branch is foreseen mostly
inline constexpr double kAhead = 300;      // instructions that are looked ahead
inline constexpr double kSpilled = 1;      // a value that no register has
inline constexpr double kBeside = 2;       // registers for operands
inline constexpr double kBesideSums = 3;   // of products of a tile: two vectors, and what both meet
// Of a window's vectors that wait, those that may be read anew instead: of one too many a Zen 5,
// 2026-11-30, tells nothing (18 sums and 14 taps), of two twice the time (13 sums and 4 of AVX2).
inline constexpr double kReadAnew = 1;
// Of the copies of a load, those that are its own: where fewer are, copies share what slides by.
// Vectors side by side with dilated taps have one of 18 in common, and nothing waits for it.
inline constexpr double kSharedLess = 0.9;
// From a store to a load of what it stored: Zen 4; Zen 5 takes 10.
inline constexpr double kForwarded = 8;
inline constexpr double kOthers = 0.15;  // of what the wanted most resource leaves, is not hidden
inline constexpr double kTold = 0.01;    // of all: resources of which less is wanted are not told
inline constexpr size_t kClosuresMax = 64;  // that are told apart

}  // namespace tiny
