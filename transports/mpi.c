/* libtiny_mpi.so: bytes between the processes that mpirun started, by any MPI. */
#include <limits.h>
#include <mpi.h>

#include "base/transport_abi.h"

/* MPI counts in int. */
enum { PIECE_BYTES = 1 << 30 };
_Static_assert(PIECE_BYTES < INT_MAX, "a piece has a count");

static MPI_Comm ring = MPI_COMM_NULL;
static int next, previous;
static int is_ours; /* whether MPI was initialised here */
static char words[MPI_MAX_ERROR_STRING];

static const char* failed(int code) {
  int length = 0;
  if (MPI_Error_string(code, words, &length) != MPI_SUCCESS) return "MPI failed";
  return words;
}

/* NULL, or what was wrong. */
static const char* check(int code) {
  return code == MPI_SUCCESS ? NULL : failed(code);
}

static int piece_of(size_t left) {
  return left < PIECE_BYTES ? (int)left : PIECE_BYTES;
}

static const char* exchange(const void* to_next, size_t sent, void* from_previous,
                            size_t received) {
  const char* from = to_next;
  char* into = from_previous;
  while (sent > 0 || received > 0) {
    const int given = piece_of(sent), taken = piece_of(received);
    const char* wrong = check(
        MPI_Sendrecv(from, given, MPI_BYTE, given > 0 ? next : MPI_PROC_NULL, 0, into, taken,
                     MPI_BYTE, taken > 0 ? previous : MPI_PROC_NULL, 0, ring, MPI_STATUS_IGNORE));
    if (wrong) return wrong;
    from += given, sent -= (size_t)given;
    into += taken, received -= (size_t)taken;
  }
  return NULL;
}

static void leave(void) {
  MPI_Comm_free(&ring);
  if (is_ours) MPI_Finalize();
}

/* The communicator of the ring; errors are told, they do not end the process. */
static const char* join(int* rank, int* count) {
  const char* wrong = check(MPI_Comm_dup(MPI_COMM_WORLD, &ring));
  if (!wrong) wrong = check(MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN));
  if (!wrong) wrong = check(MPI_Comm_rank(ring, rank));
  if (!wrong) wrong = check(MPI_Comm_size(ring, count));
  return wrong;
}

__attribute__((visibility("default"))) const char* tiny_transport_open(int32_t version,
                                                                       tiny_transport* out) {
  int is_initialised = 0, is_finalised = 0, level = 0, rank = 0, count = 0;
  const char* wrong;
  if (version != TINY_TRANSPORT_VERSION) return "it is of another version than libtiny.so";
  if (ring != MPI_COMM_NULL) return "this process has joined the others already";
  MPI_Finalized(&is_finalised);
  if (is_finalised) return "this process has left the others, and MPI lets none come back";
  MPI_Initialized(&is_initialised);
  if (!is_initialised) {
    wrong = check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level));
    if (wrong) return wrong;
    is_ours = 1;
  }
  wrong = join(&rank, &count);
  if (wrong) return wrong;
  next = (rank + 1) % count;
  previous = (rank + count - 1) % count;
  out->rank = rank;
  out->count = count;
  out->exchange = exchange;
  out->close = leave;
  return NULL;
}
