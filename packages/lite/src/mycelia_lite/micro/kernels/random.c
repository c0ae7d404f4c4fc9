/* Random numbers: Philox 4x32 with 10 rounds (Salmon et al. 2011). */

typedef struct {
    int32_t count, normal;
    uint32_t seed[2], stream[2]; /* the lower half first */
    float mean, scale;
} micro_chance;

/* The numbers behind a counter, which goes on. */
static void micro_philox(const uint32_t *seed, uint32_t *counter, uint32_t *x)
{
    uint32_t k0 = seed[0], k1 = seed[1];
    int32_t round, i;
    for (i = 0; i < 4; i++) x[i] = counter[i];
    for (round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * x[0], b = (uint64_t)0xCD9E8D57u * x[2];
        x[0] = (uint32_t)(b >> 32) ^ x[1] ^ k0;
        x[2] = (uint32_t)(a >> 32) ^ x[3] ^ k1;
        x[1] = (uint32_t)b;
        x[3] = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (i = 0; i < 4 && ++counter[i] == 0; i++) continue;
}

/* Numbers of [0, 1), or normal ones by Box and Muller, times the scale plus the mean. */
void micro_random_f32(const micro_chance *p, float *y)
{
    uint32_t counter[4] = {0, 0, 0, 0}, x[4];
    int32_t i, k;
    counter[2] = p->stream[0];
    counter[3] = p->stream[1];
    for (i = 0; i < p->count; i += 4) {
        float made[4];
        micro_philox(p->seed, counter, x);
        for (k = 0; k < 4; k++) made[k] = (float)(x[k] & 0x7FFFFFu) / 8388608.0f;
        for (k = 0; p->normal && k < 4; k += 2) {
            const float radius = sqrtf(-2.0f * logf(made[k] > 1e-7f ? made[k] : 1e-7f)), angle = 6.28318530718f * made[k + 1];
            made[k] = radius * sinf(angle);
            made[k + 1] = radius * cosf(angle);
        }
        for (k = 0; k < 4 && i + k < p->count; k++) y[i + k] = p->mean + p->scale * made[k];
    }
}
