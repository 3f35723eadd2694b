public import SharedCore

/// Which presenter suits the place where the process runs.
public enum StandardPresenter {
    /// The desktop when its session bus has a service of notifications, and else standard output.
    ///
    /// - Parameters:
    ///   - applicationName: who shows them, in the desktop's settings.
    ///   - environment: the variables of the process.
    ///   - records: a directory in which the processes of a group keep which notification of the desktop is which
    ///     message's; without one each process knows its own.
    /// - Returns: the presenter, ready for use.
    public static func choose(
        applicationName: String,
        environment: [String: String],
        records: String?
    ) async -> any NotificationPresenter {
        do {
            return try await DesktopPresenter.connect(
                applicationName: applicationName,
                environment: environment,
                records: records
            )
        } catch {
            return StandardOutputPresenter()
        }
    }
}
