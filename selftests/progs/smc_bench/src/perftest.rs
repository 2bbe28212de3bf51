// SPDX-License-Identifier: GPL-2.0

//! The output of perftest's `ib_write_bw` and `ib_write_lat`, the limit that SMC-R has.

/// The result line of `ib_write_bw --report_gbits`, in Mbit/s: bytes, iterations, peak, average,
/// message rate.
pub(crate) fn bandwidth(output: &str) -> Option<f64> {
    let numbers = result_line(output)?;
    (numbers.len() == 5).then(|| numbers[3] * 1000.0)
}

/// The times that `ib_write_lat` reports: half round trips in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Latency {
    pub(crate) median: f64,
    pub(crate) p99_9: f64,
}

/// The result line of `ib_write_lat`: bytes, iterations, least, most, typical, average,
/// deviation, 99 %, 99.9 %.
pub(crate) fn latency(output: &str) -> Option<Latency> {
    let numbers = result_line(output)?;
    (numbers.len() == 9).then(|| Latency {
        median: numbers[4],
        p99_9: numbers[8],
    })
}

/// The numbers of the line below the heading that begins with `#bytes`.
fn result_line(output: &str) -> Option<Vec<f64>> {
    let mut lines = output.lines().map(str::trim);
    lines.find(|line| line.starts_with("#bytes"))?;
    let words = lines.next()?.split_whitespace();
    words.map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANDWIDTH: &str = "\
 Data ex. method : Ethernet
---------------------------------------------------------------------------------------
 remote address: LID 0000 QPN 0x0011 PSN 0x123456
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      500              0.16               0.14 \t\t   0.000267
---------------------------------------------------------------------------------------
";
    const LATENCY: &str = "\
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    \
 t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 1       1000          700.02         4000.35      735.06     \t   740.07        \t9.08   \t\t\
 900.15    \t\t3900.35   
";

    #[test]
    fn results_are_found() {
        assert_eq!(bandwidth(BANDWIDTH), Some(140.0));
        let expected = Latency {
            median: 735.06,
            p99_9: 3900.35,
        };
        assert_eq!(latency(LATENCY), Some(expected));
    }

    #[test]
    fn a_failed_run_has_no_result() {
        for text in [
            "",
            "Couldn't connect to 10.9.0.1:18515\n",
            "#bytes\n",
            "#bytes\n---\n",
        ] {
            assert_eq!(bandwidth(text), None);
            assert_eq!(latency(text), None);
        }
        assert_eq!(latency(BANDWIDTH), None);
        assert_eq!(bandwidth(LATENCY), None);
    }
}
