from hypothesis import HealthCheck, settings

# No test asserts a time: machines are shared.
settings.register_profile("truecast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("truecast")
