/* What the HPA controller makes of an external metric: k8s pkg/controller/podautoscaler/replica_calculator.go (v1.36),
 * in its own units: whole milli and double ratios. */
#include "scaling/scaling.h"

#include <math.h>

int64_t scaling_milli(double value)
{
    return (int64_t)llround(value * 1000);
}

/* GetExternalPerPodMetricReplicas: status.replicas decides within the tolerance, and does not matter outside it. */
static int64_t desired_average(const struct scaling_hpa *hpa, int64_t usage, int64_t target, int64_t status_replicas)
{
    double ratio = (double)usage / ((double)target * (double)status_replicas); /* S = 0: +Inf or NaN, both outside */
    if (status_replicas > 0 && 1.0 - hpa->tolerance_down <= ratio && ratio <= 1.0 + hpa->tolerance_up)
        return status_replicas;
    return (int64_t)ceil((double)usage / (double)target);
}

/* GetExternalMetricReplicas: spec.replicas within the tolerance, else the ratio times the pods that are Ready. */
static int64_t desired_value(const struct scaling_hpa *hpa, int64_t usage, int64_t target,
                             const struct scaling_replicas *replicas)
{
    double ratio = (double)usage / (double)target;
    if (1.0 - hpa->tolerance_down <= ratio && ratio <= 1.0 + hpa->tolerance_up)
        return replicas->spec;
    return (int64_t)ceil(ratio * (double)replicas->ready);
}

int64_t scaling_hpa_desired(const struct scaling_hpa *hpa, double value, const struct scaling_replicas *replicas)
{
    int64_t usage = scaling_milli(value), target = scaling_milli(hpa->target);
    int64_t desired = hpa->type == SCALING_VALUE ? desired_value(hpa, usage, target, replicas)
                                                 : desired_average(hpa, usage, target, replicas->status);
    return desired > INT32_MAX ? INT32_MAX : desired;
}
