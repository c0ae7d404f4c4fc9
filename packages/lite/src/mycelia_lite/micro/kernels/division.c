/* Quotients and remainders that are defined for all integers: by 0 the largest or least of the type, or the dividend. */

static int64_t micro_quotient(int64_t a, int64_t b, int64_t most)
{
    if (b == 0) return a > 0 ? most : a < 0 ? -most - 1 : 0;
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t micro_remainder(int64_t a, int64_t b)
{
    return b == 0 ? a : b == -1 ? 0 : a % b;
}

static int64_t micro_floor_quotient(int64_t a, int64_t b, int64_t most)
{
    const int64_t rest = micro_remainder(a, b);
    return micro_quotient(a, b, most) - (b != 0 && rest != 0 && (a < 0) != (b < 0));
}

static int64_t micro_floor_remainder(int64_t a, int64_t b)
{
    const int64_t rest = micro_remainder(a, b);
    return b != 0 && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* Of the sign of the divisor. */
static double micro_floor_mod(double a, double b)
{
    const double rest = fmod(a, b);
    if (rest == 0.0) return b < 0.0 ? -0.0 : 0.0;
    return (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}
