// The event: done once, first error kept, deadlines, reuse.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/error.h"
#include "device/event.h"
#include "sync/thread.h"

namespace {

using asc::Event;
using asc::Status;

constexpr int64_t kDeadlineNs = 30'000'000'000;

}  // namespace

TEST_CASE("an event is pending until it is signalled") {
  Event event;
  CHECK_FALSE(event.is_done());
  CHECK_FALSE(event.wait(0));
  event.signal();
  CHECK(event.is_done());
  CHECK(event.wait(0));
  CHECK(event.wait(-1));
  CHECK(event.status() == Status::kOk);
}

TEST_CASE("the first error wins and does not end the run by itself") {
  Event event;
  event.fail(3, Status::kOutOfRange, "first");
  event.fail(1, Status::kFailed, "second");
  CHECK(event.has_failed());
  CHECK_FALSE(event.is_done());
  event.signal();
  CHECK(event.status() == Status::kOutOfRange);
  CHECK(event.failed_node() == 3);
  CHECK(event.error() == "first");
}

TEST_CASE("a wait ends at its deadline while the event is pending") {
  Event event;
  CHECK_FALSE(event.wait(1'000'000));
  CHECK_FALSE(event.is_done());
}

TEST_CASE("waiting threads see the signal and what was written before it") {
  for (int round = 0; round < 200; ++round) {
    Event event;
    std::string seen[3];
    {
      asc::Thread waiters[3];
      for (int i = 0; i < 3; ++i)
        waiters[i].start("waiter", [&event, text = &seen[i]] {
          if (event.wait(kDeadlineNs)) *text = event.error();
        });
      event.fail(7, Status::kFailed, "written before the signal");
      event.signal();
    }
    for (const std::string& text : seen) REQUIRE(text == "written before the signal");
  }
}

TEST_CASE("a reset event is as good as new") {
  Event event;
  event.fail(3, Status::kFailed, "old");
  event.signal();
  event.reset();
  CHECK_FALSE(event.is_done());
  CHECK_FALSE(event.has_failed());
  CHECK_FALSE(event.wait(0));
  event.signal();
  CHECK(event.wait(-1));
  CHECK(event.status() == Status::kOk);
  CHECK(event.error().empty());
}

TEST_CASE("a child process does not wait for an event of its parent") {
  Event pending, done;
  done.signal();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);  // a hang ends the child, and the check below fails
    int code = done.wait(-1) ? 0 : 1;
    try {
      pending.wait(-1);
      code = 2;
    } catch (const asc::DeviceError&) {
    }
    _exit(code);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
