/* Shared by all unit tests: the double assertion that cmocka 1.1.5 lacks. */
#include "support.h"

#include <math.h>
#include <stdio.h>

void assert_double_near_at(double got, double want, double tolerance, const char *file, int line)
{
    bool is_near = (isnan(got) && isnan(want)) || fabs(got - want) <= tolerance;
    if (is_near)
        return;
    print_error("%.17g is not within %.3g of %.17g\n", got, tolerance, want);
    _fail(file, line);
}
