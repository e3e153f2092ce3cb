//! CRC-32C on one core: the crates `crc32c` and `crc-fast` over 1 MiB and 100 B inputs (`cargo run --release`).
use std::time::Instant;
fn bench(name: &str, len: usize, f: impl Fn(&[u8]) -> u32) {
    let data: Vec<u8> = (0..len).map(|i| (i * 31) as u8).collect();
    let rounds = (1usize << 30) / len;
    let t = Instant::now();
    let mut x = 0u32;
    for _ in 0..rounds { x ^= f(std::hint::black_box(&data)); }
    println!("{name:12} {len:8} B  {:8.0} MiB/s  {x:08x}", (rounds * len) as f64 / 1048576.0 / t.elapsed().as_secs_f64());
}
fn main() {
    for len in [100, 1024, 16384, 1 << 20] {
        bench("crc32c", len, crc32c::crc32c);
        bench("crc-fast", len, |d| crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, d) as u32);
    }
}
