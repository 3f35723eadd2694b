/// Time limits of cores.
public struct CoreConfiguration: Sendable {
    /// How long a push may take until its notification is shown, with what is known by then.
    public var budget: Duration = .seconds(30)
    /// How long an executor that was asked to give way has for an orderly end, before a main fences and kills it.
    public var yieldLimit: Duration = .milliseconds(2500)
    /// How long a core for calls waits for its place, and then for a call.
    public var callPatience: Duration = .seconds(15)
    /// How long the kernel may take to release what a killed process held.
    public var releaseLimit: Duration = .milliseconds(500)
    /// How long a transaction of an executor waits while another process keeps the database locked.
    package var busyTimeout: Duration = .seconds(5)
    /// How long one waits, beside a core that ran before, for a second message of a call-id that was shown.
    package var repeatPatience: Duration = .seconds(5)
    /// How often one who waits looks by itself while nobody is there to tell it anything.
    package var lookInterval: Duration = .milliseconds(20)
    /// How often it looks while the core that runs tells it what changes: for what nobody tells, as a death.
    package var toldLookInterval: Duration = .seconds(1)

    /// The defaults.
    public init() {}
}
