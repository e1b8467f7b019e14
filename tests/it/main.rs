//! Black box: the real binary between real clients and a scripted engine, on loopback.
