//! Ends HTTP/2 connections that flood: too many streams that are reset, or too many frames that
//! carry neither a request nor an answer. Such frames cost CPU and take no memory, so no other
//! limit stops them.

use std::time::{Duration, Instant};

use taximeter_net::frames::{Frame, Frames, Kind};

/// What is counted is counted anew after this long.
const WINDOW: Duration = Duration::from_secs(10);
/// Control frames with which a client may answer one frame of data, before they count: nobody needs
/// more than one for the stream and one for the connection.
const FREE_PER_DATA_FRAME: u32 = 4;
/// Error codes of resets that say nothing against a client: it is done, we are at fault, it cancels.
const INNOCENT: [u32; 3] = [0, 2, 8];

/// What is too much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    Resets,
    ControlFrames,
}

impl Excess {
    /// A fixed word for labels.
    pub(super) const fn cause(self) -> &'static str {
        match self {
            Self::Resets => "http2_resets",
            Self::ControlFrames => "http2_control_frames",
        }
    }
}

/// Reads along with an HTTP/2 connection in both directions.
#[derive(Debug)]
pub(super) struct FloodGuard {
    came: Frames,
    went: Frames,
    resets_max: u32,
    control_frames_max: u32,
    since: Instant,
    /// Since then.
    resets: u32,
    control_frames: u32,
    /// Data that went since then, by frame.
    data_frames: u32,
    /// On the whole connection.
    resets_ever: u32,
    streams: u32,
    /// The last that the client has begun.
    pub(super) last_stream: u32,
}

impl FloodGuard {
    /// A connection that begins `now`; what it may do in 10 s.
    pub(super) const fn new(now: Instant, resets_max: u32, control_frames_max: u32) -> Self {
        Self {
            came: Frames::of_client(),
            went: Frames::of_server(),
            resets_max,
            control_frames_max,
            since: now,
            resets: 0,
            control_frames: 0,
            data_frames: 0,
            resets_ever: 0,
            streams: 0,
            last_stream: 0,
        }
    }

    /// Whether the client has sent a part of a head and not its rest.
    pub(super) const fn is_in_head(&self) -> bool {
        self.came.is_in_head()
    }

    /// The client sent this.
    ///
    /// Errors: it has sent too much of what is good for nothing.
    pub(super) fn came(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Excess> {
        if now.saturating_duration_since(self.since) >= WINDOW {
            (self.since, self.resets, self.control_frames, self.data_frames) = (now, 0, 0, 0);
        }
        let Self { came, streams, last_stream, control_frames, .. } = self;
        let mut resets = 0;
        came.read(bytes, |Frame { kind, stream, idle }| match kind {
            Kind::Headers if stream > *last_stream => {
                (*last_stream, *streams) = (stream, streams.saturating_add(1));
            }
            Kind::Reset { .. } => resets += 1,
            Kind::Control => *control_frames = control_frames.saturating_add(1),
            Kind::Data | Kind::Continuation if idle => {
                *control_frames = control_frames.saturating_add(1);
            }
            Kind::Headers | Kind::Data | Kind::Continuation => {}
        });
        self.add_resets(resets);
        let free = self.data_frames.saturating_mul(FREE_PER_DATA_FRAME);
        if self.control_frames.saturating_sub(free) > self.control_frames_max {
            return Err(Excess::ControlFrames);
        }
        if self.resets >= self.resets_max && self.resets_ever > self.streams / 2 {
            return Err(Excess::Resets);
        }
        Ok(())
    }

    /// We sent this.
    pub(super) fn went(&mut self, bytes: &[u8]) {
        let mut resets = 0;
        let data_frames = &mut self.data_frames;
        self.went.read(bytes, |Frame { kind, .. }| match kind {
            Kind::Data => *data_frames = data_frames.saturating_add(1),
            Kind::Reset { code } if !INNOCENT.contains(&code) => resets += 1,
            _ => {}
        });
        self.add_resets(resets);
    }

    /// The frame by which a connection is ended that was too busy, where one can be sent.
    pub(super) fn goodbye(&self) -> Option<[u8; 17]> {
        const ENHANCE_YOUR_CALM: u8 = 0xb;
        let [s1, s2, s3, s4] = self.last_stream.to_be_bytes();
        self.went.is_between().then_some([
            0,
            0,
            8,
            7,
            0,
            0,
            0,
            0,
            0,
            s1,
            s2,
            s3,
            s4,
            0,
            0,
            0,
            ENHANCE_YOUR_CALM,
        ])
    }

    const fn add_resets(&mut self, resets: u32) {
        self.resets = self.resets.saturating_add(resets);
        self.resets_ever = self.resets_ever.saturating_add(resets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taximeter_system::clock;

    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const RESET: u8 = 3;
    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;

    fn guard() -> FloodGuard {
        let mut guard = FloodGuard::new(clock::now(), 4, 10);
        guard.came(guard.since, &[b'x'; 24]).unwrap();
        guard
    }

    fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, 0, 0, 0, 0, stream], payload].concat()
    }

    fn came(guard: &mut FloodGuard, seconds: u64, frames: &[u8]) -> Result<(), Excess> {
        let now = guard.since + Duration::from_secs(seconds);
        guard.came(now, frames)
    }

    #[test]
    fn control_frames_have_a_maximum_in_ten_seconds() {
        for one in
            [frame(4, 0, &[]), frame(PING, 0, &[0; 8]), frame(2, 1, &[0; 5]), frame(DATA, 1, &[])]
        {
            let mut guard = guard();
            assert_eq!(came(&mut guard, 0, &one.repeat(10)), Ok(()));
            assert_eq!(came(&mut guard, 10, &one.repeat(10)), Ok(()), "another ten seconds");
            assert_eq!(came(&mut guard, 9, &one), Err(Excess::ControlFrames), "{one:?}");
        }
    }

    #[test]
    fn whoever_reads_may_say_so() {
        let mut guard = guard();
        let update = frame(WINDOW_UPDATE, 0, &[0, 0, 0, 1]);
        guard.went(&frame(DATA, 1, &[1]).repeat(10));
        assert_eq!(came(&mut guard, 0, &update.repeat(50)), Ok(()));
        assert_eq!(came(&mut guard, 0, &update), Err(Excess::ControlFrames));
    }

    #[test]
    fn resets_have_a_maximum_where_they_are_more_than_half_of_all_streams() {
        let stream = |id| frame(HEADERS, id, &[0]);
        let reset = |id| frame(RESET, id, &[0, 0, 0, 8]);
        let mut few = guard();
        let many: Vec<u8> = (1..=8).flat_map(stream).collect();
        let resets: Vec<u8> = (1..=4).flat_map(reset).collect();
        assert_eq!(came(&mut few, 0, &[many, resets.clone()].concat()), Ok(()));
        assert_eq!(came(&mut few, 0, &reset(5)), Err(Excess::Resets));
        let mut slow = guard();
        for id in 1..20 {
            assert_eq!(came(&mut slow, 3, &[stream(id), reset(id)].concat()), Ok(()));
            slow.since = clock::now();
            slow.resets = slow.resets.min(2);
        }
        let mut provoked = guard();
        provoked.went(&frame(RESET, 1, &[0, 0, 0, 2]).repeat(9));
        assert_eq!(came(&mut provoked, 0, &stream(1)), Ok(()), "an engine that fails is no excess");
        provoked.went(&frame(RESET, 1, &[0, 0, 0, 1]).repeat(4));
        assert_eq!(came(&mut provoked, 0, &stream(3)), Err(Excess::Resets));
    }

    #[test]
    fn the_end_names_the_last_stream_and_stands_between_two_frames() {
        let mut guard = guard();
        came(&mut guard, 0, &frame(HEADERS, 7, &[0])).unwrap();
        assert!(guard.goodbye().unwrap().ends_with(&[0, 0, 0, 7, 0, 0, 0, 11]));
        guard.went(&[0, 0]);
        assert_eq!(guard.goodbye(), None);
    }
}
