// Host code that may end its process or hang: run in a child, and asked how it ended.
#pragma once

#ifdef PORTLINT_HOST
#include <sys/wait.h>
#include <unistd.h>

// Whether `work` returned true within the time. Call it before anything touches the device in this process.
template <class Work>
bool survives(Work work, unsigned seconds = 60) {
  pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    _exit(work() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
#endif
