/* Prints what devices there are. */
#include <stdio.h>
#include <tiny.h>

int main(void) {
  tiny_report* report;
  if (tiny_devices(&report)) return fprintf(stderr, "%s\n", tiny_last_error()), 1;
  printf("%s\n", tiny_report_text(report));
  tiny_report_release(report);
  return 0;
}
