extension Call {
    /// What went through the card that this call alone plays on; nil when it plays on none, or on the engine's.
    public var playbackStatistics: CardStatistics? {
        (sink.filter as? CardPlaybackFilter)?.statistics.value
    }
}
