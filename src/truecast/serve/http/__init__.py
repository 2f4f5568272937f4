"""The edge of the service: HTTP in front of `Service`."""
