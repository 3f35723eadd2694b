public import Logging

/// How an engine is made.
public struct CallEngineConfiguration: Sendable {
    /// Where time comes from.
    public enum Time: Sendable, Hashable {
        /// The machine's clock; media threads ask for SCHED_FIFO of this priority, 1 to 99, or for none.
        ///
        /// What is refused is told by `CallEngine.scheduling`, and the threads run as others do.
        case real(priority: Int? = 10)
        /// A clock that stands still but for `CallEngine.advance`: the same seed gives the same call, bit for bit.
        case virtual(seed: UInt64 = 1)
    }

    /// What starts the ticks of calls.
    public enum Pace: Sendable, Hashable {
        /// A timer.
        case timer
        /// The call card's period, while that card runs.
        case callCard
    }

    /// Where time comes from.
    public var time = Time.real()
    /// What starts the ticks.
    public var pace = Pace.timer
    /// The codecs that can be asked for.
    public var registry: PluginRegistry
    /// What the roles AU and AQ stand for.
    public var cardBindings = CardBindings()
    /// Names of cards that take over, in this order, while the card that calls use is away; without any, silence does.
    ///
    /// One that is not there is logged, and looked for again by `CallEngine.reloadCards`.
    public var fallbackDevices: [String] = []
    /// Where the engine logs, off the media thread.
    public var logger: Logger

    /// Real time, built-in codecs, both roles on ALSA's `default`.
    public init(logger: Logger = Logger(label: "media.engine")) {
        self.logger = logger
        registry = .standard(logger: logger)
    }

    /// Virtual time: for tests, simulations and offline rendering.
    public static func virtual(seed: UInt64 = 1) -> CallEngineConfiguration {
        var configuration = CallEngineConfiguration()
        configuration.time = .virtual(seed: seed)
        return configuration
    }
}
