/* Shared by all unit tests: cmocka with what it needs, and a double assertion. */
#ifndef TEST_SUPPORT_H
#define TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Fails unless got is within tolerance of want; NaN equals NaN. */
#define assert_double_near(got, want, tolerance) assert_double_near_at(got, want, tolerance, __FILE__, __LINE__)
#define assert_double_same(got, want)            assert_double_near_at(got, want, 0, __FILE__, __LINE__)
void assert_double_near_at(double got, double want, double tolerance, const char *file, int line);

#endif
