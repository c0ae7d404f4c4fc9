/* What a row is made relative to: its sum of exponentials, its mean and deviation. */

typedef struct {
    int32_t outer, size, inner; /* elements of the row are `inner` apart */
} micro_axis;

void micro_softmax_f32(const micro_axis *p, const float *x, float *y)
{
    int32_t n, i, k;
    for (n = 0; n < p->outer; n++, x += p->size * p->inner, y += p->size * p->inner)
        for (i = 0; i < p->inner; i++) {
            float most = x[i], sum = 0.0f;
            for (k = 1; k < p->size; k++)
                if (x[k * p->inner + i] > most) most = x[k * p->inner + i];
            for (k = 0; k < p->size; k++) {
                const float e = expf(x[k * p->inner + i] - most);
                y[k * p->inner + i] = e;
                sum += e;
            }
            for (k = 0; k < p->size; k++) y[k * p->inner + i] /= sum;
        }
}

void micro_log_softmax_f32(const micro_axis *p, const float *x, float *y)
{
    int32_t n, i, k;
    for (n = 0; n < p->outer; n++, x += p->size * p->inner, y += p->size * p->inner)
        for (i = 0; i < p->inner; i++) {
            float most = x[i], sum = 0.0f;
            for (k = 1; k < p->size; k++)
                if (x[k * p->inner + i] > most) most = x[k * p->inner + i];
            for (k = 0; k < p->size; k++) sum += expf(x[k * p->inner + i] - most);
            sum = logf(sum);
            for (k = 0; k < p->size; k++) y[k * p->inner + i] = x[k * p->inner + i] - most - sum;
        }
}

typedef struct {
    int32_t rows, size;
    float epsilon;
} micro_rows;

void micro_layer_norm_f32(const micro_rows *p, const float *x, const float *gamma, const float *beta, float *y)
{
    int32_t n, i;
    for (n = 0; n < p->rows; n++, x += p->size, y += p->size) {
        float mean = 0.0f, variance = 0.0f;
        for (i = 0; i < p->size; i++) mean += x[i];
        mean /= (float)p->size;
        for (i = 0; i < p->size; i++) variance += (x[i] - mean) * (x[i] - mean);
        variance = 1.0f / sqrtf(variance / (float)p->size + p->epsilon);
        for (i = 0; i < p->size; i++) {
            float v = (x[i] - mean) * variance;
            if (gamma) v *= gamma[i];
            y[i] = beta ? v + beta[i] : v;
        }
    }
}
